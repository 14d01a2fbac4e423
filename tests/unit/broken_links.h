// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "forest/forest.h"

namespace weft::test {

// Nodes of four ranks, cables of two rates in each but where one is dead, and ports of two ranks.
inline forest::Graph brokenGraph(std::uint32_t ranks) {
  constexpr std::uint32_t kNode = 4;
  forest::Graph graph;
  graph.ranks = ranks;
  for (std::uint32_t a = 0; a < ranks; ++a) {
    graph.nodeOf.push_back(a / kNode);
    for (std::uint32_t b = a / kNode * kNode; b < std::min(ranks, (a / kNode + 1) * kNode); ++b) {
      const bool isDead = ranks > 2 && std::min(a, b) % kNode == 0 && std::max(a, b) % kNode == 1;
      if (a != b && !isDead) graph.links.push_back({a, b, (a + b) % 3 == 0 ? 5.0 : 10.0, 3e3});
    }
  }
  for (std::uint32_t r = 0; r < ranks && ranks > kNode; r += 2)
    graph.ports.push_back({r + 1 < ranks ? std::vector{r, r + 1} : std::vector{r}, 6, 20e3});
  return graph;
}

// In few parts, so that proofs are quick.
inline std::shared_ptr<const forest::Links> brokenLinks(std::uint32_t ranks) {
  static std::map<std::uint32_t, std::shared_ptr<const forest::Links>> grown;
  if (grown.contains(ranks)) return grown[ranks];
  forest::Links links;
  if (!forest::Links::make(brokenGraph(ranks), {.parts = 2, .rounds = 2}, &links).ok()) return {};
  return grown[ranks] = std::make_shared<const forest::Links>(std::move(links));
}

}  // namespace weft::test
