// SPDX-License-Identifier: Apache-2.0
#include "reduce/store_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace weft::reduce {
namespace {

void judge(StorePreference& choice, std::uint32_t times, double throughNs, double pastNs) {
  for (std::uint32_t i = 0; i < times; ++i) choice.judge(throughNs, pastNs);
}

TEST(StorePreference, BeginsThroughTheCachesAndChangesWhenTriesAgree) {
  StorePreference choice;
  EXPECT_FALSE(choice.isPastCaches());
  judge(choice, StorePreference::kAgree - 1, 1000, 100);
  EXPECT_FALSE(choice.isPastCaches());
  judge(choice, 1, 1000, 100);
  EXPECT_TRUE(choice.isPastCaches());
  judge(choice, StorePreference::kAgree, 100, 100);
  EXPECT_FALSE(choice.isPastCaches());
}

// One that was interrupted, say.
TEST(StorePreference, OneTryThatSaysOtherwiseChangesNothing) {
  StorePreference choice;
  for (int i = 0; i < 10; ++i) {
    judge(choice, StorePreference::kAgree - 1, 1000, 100);
    judge(choice, 1, 100, 1000);
  }
  EXPECT_FALSE(choice.isPastCaches());
}

TEST(StorePreference, PastTheCachesMustWinClearly) {
  StorePreference choice;
  judge(choice, 100, StorePreference::kMargin * 100, 100);
  EXPECT_FALSE(choice.isPastCaches());
  judge(choice, StorePreference::kAgree, StorePreference::kMargin * 100 + 1, 100);
  EXPECT_TRUE(choice.isPastCaches());
}

// What was stored past the caches is in none, which stores through them would pay for once.
TEST(StorePreference, TriesThroughTheCachesWhereTheyWereStoredThroughBefore) {
  using Try = StorePreference::Try;
  StorePreference choice;
  int here = 0, there = 0;
  EXPECT_EQ(choice.due(&here, 4096, 4096), Try::Judge) << "at once, while it may be as well either";
  judge(choice, StorePreference::kAgree, 1000, 100);
  Try next = Try::None;
  std::size_t copies = 0;
  for (; next == Try::None && copies <= 2 * StorePreference::kTryEvery; ++copies)
    next = choice.due(&here, 4096, 4096);
  EXPECT_EQ(next, Try::Prime);
  EXPECT_NEAR(static_cast<double>(copies), StorePreference::kTryEvery, 2);
  EXPECT_EQ(choice.due(&there, 4096, 4096), Try::None);
  EXPECT_EQ(choice.due(&here, 4096, 4096), Try::Judge);
  judge(choice, 1, 1000, 100);
  EXPECT_EQ(choice.due(&here, 4096, 4096), Try::None) << "it was borne out";
}

// Tries cost, so they are seldom, but where copies have become slow.
TEST(StorePreference, TriesSoonerWhereCopiesTakeLong) {
  using Try = StorePreference::Try;
  int here = 0;
  StorePreference choice;
  judge(choice, StorePreference::kAgree, 1, 1);
  const auto copiesUntilTry = [&](double throughNs) {
    choice.suspect(throughNs);
    std::size_t copies = 0;
    while (choice.due(&here, 4096, 4096) == Try::None) ++copies;
    judge(choice, 1, 1, 1);  // it was borne out
    return static_cast<double>(copies);
  };
  const double seldom = StorePreference::kTryEvery, soon = StorePreference::kTrySuspected;
  const double quick = StorePreference::kMargin, slow = StorePreference::kMargin + 1;
  EXPECT_NEAR(copiesUntilTry(quick), seldom, 2);
  for (double wait = soon; wait < seldom; wait *= 2) EXPECT_NEAR(copiesUntilTry(slow), wait, 2);
  EXPECT_NEAR(copiesUntilTry(slow), seldom, 2);
  EXPECT_NEAR(copiesUntilTry(quick), seldom, 2);
  EXPECT_NEAR(copiesUntilTry(slow), soon, 2);
}

// A copy of which all may be tried is never timed, so that only seldom tries would find out that it has
// become slow: 32 KiB took three times as long between cores without a common cache.
TEST(StoreChoice, LeavesEnoughOfACopyToBeTimed) {
  for (std::size_t bytes = StoreChoice::kLeastSplit; bytes < (1 << 20); bytes += 1000) {
    const std::size_t tried = StoreChoice::triedOf(bytes);
    EXPECT_GE(tried, 2 * StoreChoice::kLeast) << bytes;
    EXPECT_EQ(tried % 128, 0u) << bytes << ": not of whole lines";
    EXPECT_GE(bytes - tried, StoreChoice::kLeast) << bytes;
  }
}

// Short copies are tried as a whole, one way after the other, so that there are some to go by.
TEST(StoreChoice, ShortCopiesFindOutWhichWayIsQuicker) {
  std::vector<std::byte> from(StoreChoice::kLeast), to(4 * StoreChoice::kLeast);
  StoreChoice choice;
  for (std::size_t i = 0; i < 64; ++i)
    choice.copy(to.data() + i % 4 * from.size(), from.data(), from.size());
  EXPECT_GT(choice.preference().pastNs(), 0) << "nothing was tried";
  judge(choice.preference(), StorePreference::kAgree, 1e9, 1e-9);
  ASSERT_TRUE(choice.preference().isPastCaches());
  for (std::size_t i = 0; i < 8 * StorePreference::kTryEvery; ++i)
    choice.copy(to.data() + i % 4 * from.size(), from.data(), from.size());
  EXPECT_GT(choice.preference().pastNs(), 1e-9) << "what was judged long ago still holds";
}

// Of any length, at any alignment, whichever way is chosen or being tried.
TEST(StoreChoice, CopiesAllAndNothingElse) {
  std::mt19937 random(1);
  std::vector<std::byte> from(70000), to(70000), wanted(70000);
  for (std::byte& x : from) x = static_cast<std::byte>(random());
  StoreChoice choice;
  for (int i = 0; i < 400; ++i) {
    const std::size_t bytes = random() % (i % 2 == 0 ? 66000 : 12000);
    if (i % 50 < 2)
      judge(choice.preference(), StorePreference::kAgree, i % 100 < 2 ? 1000 : 1, 100);
    const std::size_t at = random() % 3000, start = random() % 3000;
    choice.copy(to.data() + at, from.data() + start, bytes);
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(start), bytes,
                wanted.begin() + static_cast<std::ptrdiff_t>(at));
    ASSERT_TRUE(to == wanted) << bytes << " bytes to " << at;
  }
}

}  // namespace
}  // namespace weft::reduce
