// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/call.h"
#include "plan/layout.h"
#include "schedule/ir.h"
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
};

// Where schedules run: what the ranks agreed on.
struct CostParameters {
  tune::Machine machine;
  std::uint32_t cores = 1;  // that the ranks have together
  bool oneProcess = false;  // writing to a peer's buffer is a plain store, not a CMA copy
  std::uint64_t arenaBytes = 0;
  std::uint64_t stagingBytes = 0;
  std::optional<Between> between;
  // By rank: the NUMA node of its cores, -1: of none. Empty where no rank has a far peer.
  std::vector<std::int32_t> memoryNodes = {};

  // Does the peer's memory lie on another NUMA node of the same host?
  bool isFar(std::uint32_t rank, std::uint32_t peer) const {
    if (memoryNodes.empty() || (between && between->nodes[rank] != between->nodes[peer]))
      return false;
    const std::int32_t one = memoryNodes[rank], other = memoryNodes[peer];
    return one >= 0 && other >= 0 && one != other;
  }
};

// How a schedule on shared buffers reaches its peers'.
enum class Reach : std::uint8_t { Mapped, Cma };

// How long one call takes by this schedule, in nanoseconds. A pure function: it counts what the
// schedule's ops cost the busiest core, and the rounds in which ranks wait for each other, and
// prices them by the machine's numbers. Meant for comparing schedules of the same call: what is
// equal in all of them (entering the call, the caches' state before it) is left out. It is for data
// that applications use between calls, so what a peer reads has been written by its owner since.
double estimateNs(const schedule::Schedule& schedule, const Call& call, const CostParameters& costs,
                  Reach reach = Reach::Mapped);

// What one rank writes to, and reads from, memory of other NUMA nodes in one call.
struct FarBytes {
  double written = 0, read = 0;
};
FarBytes farBytesOf(const schedule::Schedule& schedule, const Call& call,
                    const CostParameters& costs, std::uint32_t rank);

// What it costs that all ranks hear of each other once.
double roundNs(std::uint32_t ranks, const CostParameters& costs);

// From so many bytes of a rank's buffers on, results are stored past the caches.
std::uint64_t streamMin(std::uint32_t ranks, const CostParameters& costs);

}  // namespace weft::plan
