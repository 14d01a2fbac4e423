// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft::forest {

// Maximum flows by Dinic's algorithm: shortest augmenting paths, a level graph at a time.
template <class Capacity>
class MaxFlow {
 public:
  static constexpr Capacity kUnlimited = std::numeric_limits<Capacity>::max() / 4;

  explicit MaxFlow(std::uint32_t vertices) : edgesOf_(vertices) {}

  std::uint32_t addVertex() {
    edgesOf_.emplace_back();
    return static_cast<std::uint32_t>(edgesOf_.size() - 1);
  }
  std::uint32_t addEdge(std::uint32_t from, std::uint32_t to, Capacity capacity) {
    const auto edge = static_cast<std::uint32_t>(edges_.size());
    edgesOf_[from].push_back(edge);
    edgesOf_[to].push_back(edge + 1);
    edges_.push_back({to, capacity, capacity});
    edges_.push_back({from, 0, 0});
    return edge;
  }
  void setCapacity(std::uint32_t edge, Capacity capacity) {
    edges_[edge].capacity = edges_[edge].left = capacity;
  }
  Capacity capacity(std::uint32_t edge) const { return edges_[edge].capacity; }

  // No more than `enough` is looked for.
  Capacity run(std::uint32_t source, std::uint32_t sink, Capacity enough = kUnlimited) {
    const Capacity flow = augment(source, sink, enough);
    clear();
    return flow;
  }

  // Of a run that has found less than enough: is it on the source's side of a minimum cut?
  bool isBeforeCut(std::uint32_t vertex) const { return level_[vertex] != kUnreached; }

 protected:
  // An edge's reverse, with an odd number, is next to it. What is left of that is what is on the edge.
  struct Edge {
    std::uint32_t to = 0;
    Capacity capacity = 0, left = 0;
    bool isUsed = false;  // of an even one: something is on it, or was since clear()
  };
  static constexpr std::uint32_t kUnreached = ~0u;
  static constexpr Capacity kNothing = std::is_integral_v<Capacity> ? 0 : 1e-12;  // rounding

  Capacity augment(std::uint32_t source, std::uint32_t sink, Capacity enough) {
    Capacity flow = 0;
    while (flow < enough && findLevels(source, sink)) {
      next_.assign(edgesOf_.size(), 0);
      flow += push(source, sink, enough - flow);
    }
    return flow;
  }

  void put(Capacity amount, std::uint32_t e) {
    edges_[e].left -= amount;
    edges_[e ^ 1].left += amount;
    if (!std::exchange(edges_[e & ~1u].isUsed, true)) used_.push_back(e & ~1u);
  }

  // Nothing is on any edge.
  void clear() {
    for (const std::uint32_t e : used_) {
      edges_[e].left = edges_[e].capacity;
      edges_[e + 1].left = 0;
      edges_[e].isUsed = false;
    }
    used_.clear();
  }

  std::vector<std::vector<std::uint32_t>> edgesOf_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> used_;

 private:
  bool findLevels(std::uint32_t source, std::uint32_t sink) {
    level_.assign(edgesOf_.size(), kUnreached);
    level_[source] = 0;
    reached_.assign(1, source);
    for (std::size_t i = 0; i < reached_.size(); ++i)
      for (const std::uint32_t e : edgesOf_[reached_[i]]) {
        const std::uint32_t to = edges_[e].to;
        if (edges_[e].left <= kNothing || level_[to] != kUnreached) continue;
        level_[to] = level_[reached_[i]] + 1;
        if (to == sink) return true;
        reached_.push_back(to);
      }
    return false;
  }

  Capacity push(std::uint32_t at, std::uint32_t sink, Capacity limit) {
    if (at == sink) return limit;
    Capacity pushed = 0;
    for (std::uint32_t& i = next_[at]; i < edgesOf_[at].size(); ++i) {
      const std::uint32_t e = edgesOf_[at][i];
      const Edge& edge = edges_[e];
      if (edge.left <= kNothing || level_[edge.to] != level_[at] + 1) continue;
      const Capacity more = push(edge.to, sink, std::min<Capacity>(limit - pushed, edge.left));
      if (more > 0) put(more, e);
      pushed += more;
      if (limit - pushed <= kNothing) break;
    }
    return pushed;
  }

  std::vector<std::uint32_t> level_, next_, reached_;
};

}  // namespace weft::forest
