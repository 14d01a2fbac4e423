// SPDX-License-Identifier: Apache-2.0
#include "schedule/nodes.h"

#include <gtest/gtest.h>

namespace weft::schedule {
namespace {

TEST(Nodes, EvenOnesHaveARankOnEachRail) {
  const Nodes nodes(Nodes::even(3, 4));
  EXPECT_EQ(nodes.count(), 4u);
  EXPECT_EQ(nodes.rails(), 3u);
  for (uint32_t r = 0; r < nodes.ranks(); ++r)
    for (uint32_t rail = 0; rail < 3; ++rail)
      EXPECT_EQ(nodes.standsOn(r, rail), r % 3 == rail) << r << " " << rail;
}

TEST(Nodes, RanksOfSmallNodesStandOnSeveralRails) {
  const Nodes nodes({1, 0, 1, 1, 1, 0});  // node 0: ranks 1 and 5; node 1: ranks 0, 2, 3, 4
  EXPECT_EQ(nodes.rails(), 4u);
  EXPECT_EQ(nodes.members(0), (std::vector<uint32_t>{1, 5}));
  for (uint32_t rail = 0; rail < 4; ++rail) {
    EXPECT_EQ(nodes.onRail(0, rail), rail % 2 == 0 ? 1u : 5u);
    EXPECT_EQ(nodes.onRail(1, rail), nodes.members(1)[rail]);
  }
  // What is for a rank arrives on a rail on which it stands.
  for (uint32_t r = 0; r < nodes.ranks(); ++r) EXPECT_TRUE(nodes.standsOn(r, nodes.railOf(r)));
}

}  // namespace
}  // namespace weft::schedule
