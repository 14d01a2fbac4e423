// SPDX-License-Identifier: Apache-2.0
#include "tools/test/blame.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

namespace weft::test {
using namespace test;
namespace {

using perf::WrongData;

constexpr int kRanks = 4;

// One group of all, in which rank r has received data of sources[r]; kNone: all was right.
constexpr int kNone = -9;
std::string culpritAmong(const std::vector<int>& sources) {
  std::vector<WrongData> wrong;
  std::vector<perf::RankInfo> ranks(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    const int source = sources[static_cast<std::size_t>(rank)];
    const bool right = source == kNone;
    wrong.push_back({rank, 0, rank, right ? WrongData::kNowhere : source, right ? 0u : 5u});
    auto& info = ranks[static_cast<std::size_t>(rank)];
    std::snprintf(info.host, sizeof info.host, "node%d", rank);
  }
  return culpritOf(wrong, ranks);
}

TEST(Culprit, IsTheLinkOfOneSourceAndOneReceiver) {
  EXPECT_EQ(culpritAmong({kNone, kNone, 3, kNone}),
            "the link from rank 3 on node3 to rank 2 on node2");
}

TEST(Culprit, IsTheSourceOfAll) {
  EXPECT_EQ(culpritAmong({1, kNone, 1, 1}), "rank 1 on node1, whose data all of it was");
  EXPECT_EQ(culpritAmong({kNone, kNone, 2, kNone}), "rank 2 on node2, whose data all of it was");
}

TEST(Culprit, IsTheOnlyReceiver) {
  EXPECT_EQ(culpritAmong({kNone, WrongData::kSeveral, kNone, kNone}),
            "rank 1 on node1, which received all of it");
}

TEST(Culprit, IsNobodyWhereNothingIsInCommon) {
  EXPECT_EQ(culpritAmong({1, 2, kNone, kNone}), "");
  EXPECT_EQ(culpritAmong({WrongData::kSeveral, WrongData::kSeveral, kNone, kNone}), "");
  EXPECT_EQ(culpritAmong({WrongData::kNowhere, WrongData::kNowhere, kNone, kNone}), "");
}

TEST(Culprit, SourcesAreRanksOfTheGroup) {
  std::vector<perf::RankInfo> ranks(kRanks);
  // Groups 0: ranks 0, 2 and 1: ranks 1, 3; rank 3 has wrong data of the first of its group.
  const std::vector<WrongData> wrong = {{0, 0, 0, WrongData::kNowhere, 0},
                                        {1, 1, 0, WrongData::kNowhere, 0},
                                        {2, 0, 1, WrongData::kNowhere, 0},
                                        {3, 1, 1, 0, 7}};
  EXPECT_EQ(culpritOf(wrong, ranks), "the link from rank 1 on  to rank 3 on ");
}

}  // namespace
}  // namespace weft::test
