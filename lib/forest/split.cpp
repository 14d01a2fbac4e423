// SPDX-License-Identifier: Apache-2.0
#include "forest/split.h"

#include <algorithm>
#include <span>

#include "forest/exchange.h"

namespace weft::forest {
namespace {

// What to try first: parts in equal numbers to all other nodes, to the rank of the same place there.
class Pattern {
 public:
  Pattern(const Graph& graph, const UnitGraph& units) : graph_(graph), units_(units) {
    for (std::uint32_t r = 0; r < graph.ranks; ++r) {
      if (graph.nodeOf[r] >= members_.size()) members_.resize(graph.nodeOf[r] + 1);
      members_[graph.nodeOf[r]].push_back(r);
      out_.push_back(units.outOf(r));
      in_.push_back(units.into(r));
      most_ = std::max(most_, members_[graph.nodeOf[r]].size());
    }
  }

  std::vector<Pair> make() {
    for (std::size_t place = 0; place < most_; ++place)
      while (addRound(place, 1, members_.size())) {
      }
    exchange();
    for (std::size_t place = 1; place < most_; ++place)
      while (addRound(place, 0, 1)) {
      }
    return std::move(pairs_);
  }

 private:
  // One part of each rank to each node in turn, `place` ranks further on there.
  bool addRound(std::size_t place, std::size_t first, std::size_t end) {
    const std::size_t before = pairs_.size();
    for (std::size_t step = first; step < end; ++step)
      for (std::uint32_t from = 0; from < graph_.ranks; ++from) {
        const auto& here = members_[graph_.nodeOf[from]];
        const auto& there = members_[(graph_.nodeOf[from] + step) % members_.size()];
        if (there.empty()) continue;
        const auto at = static_cast<std::size_t>(std::ranges::find(here, from) - here.begin());
        add(from, there[(at + place) % there.size()]);
      }
    return pairs_.size() > before;
  }

  void add(std::uint32_t from, std::uint32_t to) {
    if (out_[from] == 0 || in_[to] == 0 || !units_.mayJoin(from, to)) return;
    --out_[from];
    --in_[to];
    pairs_.push_back({from, to});
  }

  // What is left over in one node changes partners with pairs of other nodes.
  void exchange() {
    const std::size_t all = pairs_.size();
    std::size_t next = 0;
    for (std::uint32_t from = 0; from < graph_.ranks; ++from)
      for (std::uint32_t to = 0; to < graph_.ranks; ++to)
        for (std::size_t tries = 0; tries < all && out_[from] > 0 && in_[to] > 0; ++tries) {
          Pair& other = pairs_[next++ % all];
          if (areNear(from, other.to) || areNear(other.from, to)) continue;
          pairs_.push_back({other.from, to});
          pairs_[(next - 1) % all].from = from;
          --out_[from];
          --in_[to];
          tries = 0;
        }
  }
  bool areNear(std::uint32_t a, std::uint32_t b) const {
    return graph_.nodeOf[a] == graph_.nodeOf[b];
  }

  const Graph& graph_;
  const UnitGraph& units_;
  std::vector<std::vector<std::uint32_t>> members_;  // of each node
  std::size_t most_ = 0;
  std::vector<Units> out_, in_;  // left
  std::vector<Pair> pairs_;
};

// All of them, or as many as can be.
void shiftAll(std::span<const Pair> pairs, UnitGraph* units) {
  if (pairs.empty()) return;
  for (const Pair& pair : pairs) units->shift(pair.from, pair.to, 1);
  if (units->isEnough()) return;
  for (const Pair& pair : pairs) units->shift(pair.from, pair.to, -1);
  if (pairs.size() == 1) return;
  const std::size_t half = pairs.size() / 2;
  shiftAll(pairs.first(half), units);
  shiftAll(pairs.subspan(half), units);
}

// Any pairs that go, part by part; those of one node last, which take the room of two others.
void shiftRest(const Graph& graph, bool inside, UnitGraph* units) {
  for (std::uint32_t to = 0; to < graph.ranks; ++to)
    for (std::uint32_t k = 1; k < graph.ranks && units->into(to) > 0; ++k) {
      const std::uint32_t from = (to + k) % graph.ranks;
      if ((graph.nodeOf[from] == graph.nodeOf[to]) != inside) continue;
      if (units->outOf(from) == 0 || !units->mayJoin(from, to)) continue;
      units->shift(from, to, 1);
      if (units->isEnough()) {
        --k;
        continue;
      }
      units->shift(from, to, -1);
    }
}

}  // namespace

bool splitSwitch(const Graph& graph, UnitGraph* units) {
  shiftAll(Pattern(graph, *units).make(), units);
  for (const bool inside : {false, true}) shiftRest(graph, inside, units);
  exchangeRest(units);
  units->dropSwitch();
  return units->isEnough();
}

}  // namespace weft::forest
