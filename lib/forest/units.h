// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "forest/graph.h"
#include "forest/kept_flow.h"

namespace weft::forest {

struct Pair {
  std::uint32_t from = 0, to = 0;
};

// What is to be sent: `parts` equal parts of each root's bytes, to all ranks.
struct Demand {
  std::vector<std::uint32_t> roots;
  Units parts = 1;
  Units total() const { return static_cast<Units>(roots.size()) * parts; }
};

// A graph whose links carry whole numbers of parts: between two ranks, and of each rank, out of it and
// into it, through the switch.
class UnitGraph {
 public:
  // Links and ports carry `units` parts for each byte a nanosecond, rounded down. The ranks of a port
  // have equal shares of it.
  UnitGraph(const Graph& graph, const Demand& demand, double units);

  // Can all ranks get all parts at once? If not, shares are moved to who lacks them, as far as that
  // helps.
  bool settleShares();

  // So many parts from one rank straight to another and no longer through the switch.
  void shift(std::uint32_t from, std::uint32_t to, Units units);
  // The switch is gone.
  void dropSwitch();
  bool isEnough();
  bool isEnoughWithoutSwitch() const;
  // Up to so many parts less from one rank straight to another, as many as are not needed.
  Units take(std::uint32_t from, std::uint32_t to, Units parts);
  void give(std::uint32_t from, std::uint32_t to, Units parts) { add(edgeOf(from, to), parts); }
  Units total() const { return total_; }
  // Up to so many parts come to a rank from another one instead, as many as can.
  Units move(std::uint32_t from, std::uint32_t other, std::uint32_t to, Units parts);

  Units outOf(std::uint32_t rank) const { return flow_.capacity(out_[rank]); }
  Units into(std::uint32_t rank) const { return flow_.capacity(in_[rank]); }
  Units between(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t edge = pair_[from * ranks_ + to];
    return edge == kNone ? 0 : flow_.capacity(edge);
  }
  // May the switch join them? Not where a cable does.
  bool mayJoin(std::uint32_t from, std::uint32_t to) const {
    return from != to && !linked_[from * ranks_ + to];
  }
  std::uint32_t ranks() const { return ranks_; }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t edgeOf(std::uint32_t from, std::uint32_t to);
  void add(std::uint32_t edge, Units units);
  bool moveShares(Units lacking);

  const Graph& graph_;
  const Units total_;
  const std::uint32_t ranks_, core_, source_;
  KeptFlow flow_;
  std::vector<KeptFlow::Kept> kept_;  // of take(), to each rank
  std::vector<std::uint32_t> out_, in_, pair_;
  std::vector<bool> linked_;
  std::vector<std::uint32_t> order_;  // of ranks: who lacked parts last comes first
  std::vector<std::uint32_t>
      lacked_;  // by rank: when it lacked parts last, of so many times; 0: never
  std::uint32_t times_ = 0;
  std::vector<std::uint32_t> portOf_, sharing_;  // by rank; the ranks of all ports
  Units found_ = 0;                              // of the last flow
};

}  // namespace weft::forest
