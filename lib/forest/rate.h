// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "forest/graph.h"

namespace weft::forest {

// How many bytes a nanosecond each of `roots` can send to all ranks at once, all of them the same: over
// all cuts, the capacity of what crosses the cut to the roots before it (ForestColl, arXiv 2402.06787).
// With one root it is Edmonds' bound of a broadcast. And over some
// families of disjoint sets of ranks: what is sent over a port to two of them passes it twice, which no
// single cut says, since it takes switches for free to copy. 0: some rank is not reached. kUnlimitedRate, or
// more, if nothing limits it. The first `sinks` ranks stand for all.
double bestRate(const Graph& graph, const std::vector<std::uint32_t>& roots, std::uint32_t sinks);

}  // namespace weft::forest
