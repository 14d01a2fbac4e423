// SPDX-License-Identifier: Apache-2.0
#include "base/rank_list.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace weft::inline base {
namespace {

using Ranks = std::vector<std::uint32_t>;

TEST(RankList, NeighboursBecomeRanges) {
  EXPECT_EQ(rankRanges(Ranks{}), "");
  EXPECT_EQ(rankRanges(Ranks{3}), "3");
  EXPECT_EQ(rankRanges(Ranks{0, 1, 2, 4}), "0-2,4");
  EXPECT_EQ(rankRanges(Ranks{5, 9, 12}), "5,9,12");
}

TEST(RankList, ARankMayBeNamedTwice) {
  EXPECT_EQ(rankRanges(Ranks{1, 1, 2}), "1-2");
  EXPECT_EQ(rankRanges(std::vector<int>{-1, -1}), "-1");
}

TEST(RankList, OneRankOrMore) {
  EXPECT_EQ(rankList(Ranks{3}), "rank 3");
  EXPECT_EQ(rankList(Ranks{2, 3}), "ranks 2-3");
}

}  // namespace
}  // namespace weft::inline base
