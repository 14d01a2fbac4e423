// SPDX-License-Identifier: Apache-2.0
#include "forest/units.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft::forest {
namespace {

// No link needs to carry more than all parts.
Units wholeOf(double rate, double units, Units most) {
  const double whole = std::floor(rate * units * (1 + 1e-9));
  return whole >= most ? most : static_cast<Units>(whole);
}

}  // namespace

UnitGraph::UnitGraph(const Graph& graph, const Demand& demand, double units)
    : graph_(graph),
      total_(demand.total()),
      ranks_(graph.ranks),
      core_(ranks_),
      source_(ranks_ + 1),
      flow_(ranks_ + 2),
      kept_(ranks_),
      pair_(std::size_t{ranks_} * ranks_, kNone),
      linked_(pair_.size(), false),
      order_(ranks_),
      lacked_(ranks_, 0),
      portOf_(ranks_, kNone) {
  std::iota(order_.begin(), order_.end(), 0u);
  for (const Graph::Link& link : graph.links) {
    const std::size_t pair = std::size_t{link.from} * ranks_ + link.to;
    linked_[pair] = true;
    pair_[pair] = flow_.addEdge(link.from, link.to, wholeOf(link.rate, units, total_));
  }
  for (std::uint32_t r = 0; r < ranks_; ++r) {
    out_.push_back(flow_.addEdge(r, core_, 0));
    in_.push_back(flow_.addEdge(core_, r, 0));
  }
  for (std::uint32_t p = 0; p < graph.ports.size(); ++p) {
    const Graph::Port& port = graph.ports[p];
    const auto members = static_cast<Units>(port.ranks.size());
    const Units all = wholeOf(port.rate, units, members * total_);
    Units more = all % members;
    for (const std::uint32_t rank : port.ranks) {
      const Units share = all / members + (more-- > 0 ? 1 : 0);
      flow_.setCapacity(out_[rank], share);
      flow_.setCapacity(in_[rank], share);
      portOf_[rank] = p;
      sharing_.push_back(rank);
    }
  }
  for (const std::uint32_t root : demand.roots) flow_.addEdge(source_, root, demand.parts);
}

bool UnitGraph::isEnough() {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    found_ = flow_.run(source_, order_[i], total_);
    if (found_ >= total_) continue;
    lacked_[order_[i]] = ++times_;
    std::rotate(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(i),
                order_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return false;
  }
  return true;
}

bool UnitGraph::isEnoughWithoutSwitch() const {
  UnitGraph rest = *this;
  rest.dropSwitch();
  return rest.isEnough();
}

// Across the cut that was found, inside the ports that have ranks on both sides of it. What enters the
// switch counts if that is behind the cut, else what leaves it. A part from each rank to each: more would
// swing back and forth, and so would the last ones between two that lack them, if who lacked them last did
// not give last.
bool UnitGraph::moveShares(Units lacking) {
  const bool gets = flow_.isBeforeCut(core_);
  const std::vector<std::uint32_t>& edges = gets ? in_ : out_;
  std::vector<std::uint32_t> givers = sharing_;
  std::ranges::stable_sort(givers, {}, [&](std::uint32_t r) { return lacked_[r]; });
  Units moved = 0;
  for (const std::uint32_t from : givers)
    for (const std::uint32_t to : graph_.ports[portOf_[from]].ranks) {
      if (flow_.isBeforeCut(from) != gets || flow_.isBeforeCut(to) == gets) continue;
      if (moved == lacking || flow_.capacity(edges[from]) == 0) continue;
      add(edges[from], -1);
      add(edges[to], 1);
      ++moved;
    }
  return moved > 0;
}

bool UnitGraph::settleShares() {
  constexpr std::uint32_t kTriesOfARank = 20;
  for (std::uint32_t tries = 0; tries <= kTriesOfARank * ranks_; ++tries) {
    if (isEnough()) return true;
    if (!moveShares(total_ - found_)) return false;
  }
  return false;
}

void UnitGraph::add(std::uint32_t edge, Units units) {
  flow_.setCapacity(edge, flow_.capacity(edge) + units);
}

void UnitGraph::shift(std::uint32_t from, std::uint32_t to, Units units) {
  add(edgeOf(from, to), units);
  add(out_[from], -units);
  add(in_[to], -units);
}

std::uint32_t UnitGraph::edgeOf(std::uint32_t from, std::uint32_t to) {
  std::uint32_t& edge = pair_[from * ranks_ + to];
  if (edge == kNone) edge = flow_.addEdge(from, to, 0);
  return edge;
}

// Whatever is short of it then is on the far side of that link.
Units UnitGraph::take(std::uint32_t from, std::uint32_t to, Units parts) {
  const std::uint32_t edge = edgeOf(from, to);
  add(edge, -parts);
  const Units lacking = std::min(parts, total_ - flow_.runFrom(&kept_[to], source_, to, total_));
  add(edge, lacking);
  return parts - lacking;
}

Units UnitGraph::move(std::uint32_t from, std::uint32_t other, std::uint32_t to, Units parts) {
  add(edgeOf(other, to), parts);
  const Units moved = take(from, to, parts);
  add(edgeOf(other, to), moved - parts);
  return moved;
}

void UnitGraph::dropSwitch() {
  for (std::uint32_t r = 0; r < ranks_; ++r) {
    flow_.setCapacity(out_[r], 0);
    flow_.setCapacity(in_[r], 0);
  }
}

}  // namespace weft::forest
