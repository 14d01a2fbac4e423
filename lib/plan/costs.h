// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tune/machine.h"

namespace weft::plan {

// What carries bytes between nodes. Without it all ranks share memory. The figures are those
// assumed of links that no file describes: they only have to rank algorithms, and sparing the links
// is right for all that are slower than memory.
struct Between {
  std::vector<std::uint32_t> nodes;  // by rank: its node
  double latencyNs = 20e3;
  double bytesPerNs = 25.0 / 8;  // of a node, one direction
  double messageNs = 1e3;        // of a rank's time
  double rankBytesPerNs = 0;     // of that, what one rank can use alone; 0: all
};

// What joins the ranks of a node that share no memory: each pair has a cable of its own, or goes by
// the node's rails.
struct Cables {
  std::vector<std::uint32_t> places;  // by rank: which of its node's it is
  std::uint32_t mostPlaces = 0;
  std::vector<double> bytesPerNs;  // from place to place, row by row; 0: no cable
  double latencyNs = 0;
  double messageNs = 1e3;  // of a rank's time

  double between(std::uint32_t rank, std::uint32_t peer) const {
    return bytesPerNs[places[rank] * mostPlaces + places[peer]];
  }
};

// How a message comes to a peer.
enum class Medium : std::uint8_t { Memory, Cable, Rails };

// Whoever shares a step with other threads of the rank cuts it into pieces that take so many times
// what sharing costs at least: two threads gain a quarter of the time then, or more.
inline constexpr double kWorthSharing = 2;

// The threads of each rank that have a core of their own, of the rank that has fewest, and what
// they cost the one that costs most.
struct TeamCosts {
  std::uint32_t threads = 1;
  double shareNs = 0;  // a step among those that are awake
  double wakeNs = 0;   // once a call
};

// Where schedules run: what the ranks agreed on.
struct CostParameters {
  tune::Machine machine;
  std::uint32_t cores = 1;  // that the ranks have together
  TeamCosts team = {};
  bool oneProcess = false;  // writing to a peer's buffer is a plain store, not a CMA copy
  std::uint64_t arenaBytes = 0;
  std::uint64_t stagingBytes = 0, longStagingBytes = 0;  // as Budget says
  std::optional<Between> between;
  std::optional<Cables> cables = {};  // without, the ranks of a node share memory
  // By rank: the NUMA node of its cores, -1: of none. Empty where no rank has a far peer.
  std::vector<std::int32_t> memoryNodes = {};

  bool areBetween(std::uint32_t rank, std::uint32_t peer) const {
    return between && between->nodes[rank] != between->nodes[peer];
  }
  bool hasLinks() const { return between || cables; }
  // Of the time that a message in memory is on its way, what its receiver's core takes to read the line: so
  // much for each of them, also of those that have come. The root of a gather of 8 bytes pays 51 ns for each
  // further rank where a flag takes 183 from one core to another (docs/prediction.md).
  double receiptNs() const { return machine.exchangeNs / 4; }
  // A pair of one node by itself that has no cable has no other way.
  Medium mediumTo(std::uint32_t rank, std::uint32_t peer) const {
    if (areBetween(rank, peer)) return Medium::Rails;
    if (!cables) return Medium::Memory;
    return cables->between(rank, peer) > 0 || !between ? Medium::Cable : Medium::Rails;
  }
  // Does the peer's memory lie on another NUMA node of the same host?
  bool isFar(std::uint32_t rank, std::uint32_t peer) const {
    if (memoryNodes.empty() || areBetween(rank, peer)) return false;
    const std::int32_t one = memoryNodes[rank], other = memoryNodes[peer];
    return one >= 0 && other >= 0 && one != other;
  }
};

}  // namespace weft::plan
