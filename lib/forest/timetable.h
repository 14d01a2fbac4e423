// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "forest/graph.h"
#include "forest/pack.h"

namespace weft::forest {

// A tree's parts have come to a rank: of one of the rounds of a segment.
struct Visit {
  std::uint32_t round = 0, tree = 0, rank = 0;
};

// In which order parts come to ranks, over all trees, where four segments of a message are under way at
// once, and each has so many rounds: a rank had better wait for them, and send them on, in this order.
// What one rank sends to another goes one by one; ports are shared fairly. A rank of a tree comes after the
// one before it.
std::vector<Visit> orderOf(const Graph& graph, const std::vector<Tree>& trees, std::uint32_t rounds,
                           double partBytes, double roundNs);

}  // namespace weft::forest
