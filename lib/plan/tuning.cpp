// SPDX-License-Identifier: Apache-2.0
#include "plan/tuning.h"

#include "schedule/nodes.h"

namespace weft::plan {

bool hasLevels(const Tuning& tuning) {
  if (tuning.nodes.empty()) return false;
  const schedule::Nodes nodes(tuning.nodes);
  return nodes.count() > 1 && nodes.rails() > 1;
}

bool isCrowdedHost(const Tuning& tuning) {
  constexpr std::uint32_t kMostReached = 256;
  constexpr std::uint32_t kMost = 4096;  // of more, what one hands to another would not fit
  return !tuning.costs.between && !tuning.sharesAll && tuning.ranks > kMostReached &&
         tuning.ranks <= kMost;
}

schedule::Shape shapeOf(const Tuning& tuning, std::uint32_t root) {
  schedule::Shape shape{.ranks = tuning.ranks,
                        .root = root,
                        .localRanks = 1,
                        .nodeOf = tuning.nodes,
                        .links = tuning.links};
  if (!hasLevels(tuning)) return shape;
  const schedule::Nodes nodes(tuning.nodes);
  if (schedule::Nodes::even(nodes.rails(), nodes.count()) == tuning.nodes)
    shape.localRanks = nodes.rails();
  return shape;
}

}  // namespace weft::plan
