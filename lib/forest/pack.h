// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "forest/units.h"

namespace weft::forest {

// Some parts of a root's bytes and the way that they take to all ranks.
struct Tree {
  struct Edge {
    std::uint32_t from = 0, to = 0;
    friend bool operator==(const Edge&, const Edge&) = default;
  };
  std::uint32_t root = 0;
  std::uint32_t first = 0, parts = 0;  // of the root's
  std::vector<Edge> edges;             // each after the one that leads to where it begins
};

// Trees that together use no link more than it carries, for a graph without its switch in which all
// ranks can get all parts: an edge at a time, such that what is left can still be packed (Edmonds;
// Bérczi and Frank, packing arborescences; one maximum flow each).
std::vector<Tree> packTrees(const UnitGraph& units, const Demand& demand);

}  // namespace weft::forest
