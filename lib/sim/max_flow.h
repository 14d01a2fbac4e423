// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace weft::sim {

// Maximum flows by Dinic's algorithm: shortest augmenting paths, a level graph at a time.
class MaxFlow {
 public:
  static constexpr double kUnlimited = std::numeric_limits<double>::max() / 4;

  explicit MaxFlow(std::uint32_t vertices) : edgesOf_(vertices) {}

  std::uint32_t addEdge(std::uint32_t from, std::uint32_t to, double capacity) {
    const auto edge = static_cast<std::uint32_t>(edges_.size());
    edgesOf_[from].push_back(edge);
    edgesOf_[to].push_back(edge + 1);
    edges_.push_back({to, capacity, capacity});
    edges_.push_back({from, 0, 0});
    return edge;
  }
  void setCapacity(std::uint32_t edge, double capacity) { edges_[edge].capacity = capacity; }

  double run(std::uint32_t source, std::uint32_t sink) {
    for (Edge& edge : edges_) edge.left = edge.capacity;
    double flow = 0;
    while (findLevels(source, sink)) {
      next_.assign(edgesOf_.size(), 0);
      while (const double more = push(source, sink, kUnlimited)) flow += more;
    }
    return flow;
  }

 private:
  struct Edge {
    std::uint32_t to = 0;
    double capacity = 0, left = 0;
  };
  static constexpr std::uint32_t kUnreached = ~0u;
  static constexpr double kNothing = 1e-12;  // rounding

  bool findLevels(std::uint32_t source, std::uint32_t sink) {
    level_.assign(edgesOf_.size(), kUnreached);
    level_[source] = 0;
    std::vector<std::uint32_t> reached{source};
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const std::uint32_t e : edgesOf_[reached[i]]) {
        if (edges_[e].left <= kNothing || level_[edges_[e].to] != kUnreached) continue;
        level_[edges_[e].to] = level_[reached[i]] + 1;
        reached.push_back(edges_[e].to);
      }
    return level_[sink] != kUnreached;
  }

  double push(std::uint32_t at, std::uint32_t sink, double limit) {
    if (at == sink) return limit;
    for (std::size_t& i = next_[at]; i < edgesOf_[at].size(); ++i) {
      const std::uint32_t e = edgesOf_[at][i];
      Edge& edge = edges_[e];
      if (edge.left <= kNothing || level_[edge.to] != level_[at] + 1) continue;
      const double pushed = push(edge.to, sink, std::min(limit, edge.left));
      if (pushed <= kNothing) continue;
      edge.left -= pushed;
      edges_[e ^ 1].left += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<std::vector<std::uint32_t>> edgesOf_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> level_;
  std::vector<std::size_t> next_;
};

}  // namespace weft::sim
