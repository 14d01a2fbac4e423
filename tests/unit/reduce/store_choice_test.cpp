// SPDX-License-Identifier: Apache-2.0
#include "reduce/store_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "base/now.h"

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
  EXPECT_EQ(choice.due(&here, 4096), Try::Judge) << "at once, while it may be as well either";
  judge(choice, StorePreference::kAgree, 1000, 100);
  Try next = Try::None;
  std::size_t copies = 0;
  for (; next == Try::None && copies <= 2 * StorePreference::kTryEvery; ++copies)
    next = choice.due(&here, 4096);
  EXPECT_EQ(next, Try::Prime);
  EXPECT_NEAR(static_cast<double>(copies), StorePreference::kTryEvery, 2);
  EXPECT_EQ(choice.due(&there, 4096), Try::None);
  EXPECT_EQ(choice.due(&here, 4096), Try::Judge);
  judge(choice, 1, 1000, 100);
  EXPECT_EQ(choice.due(&here, 4096), Try::None) << "it was borne out";
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
    while (choice.due(&here, 4096) == Try::None) ++copies;
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

// One that was interrupted, say, is no reason to look no further: what it took is compared with the other
// way's time of the same try alone.
TEST(StorePreference, EachTryIsPrimedAnew) {
  using Try = StorePreference::Try;
  StorePreference choice;
  int here = 0;
  judge(choice, StorePreference::kAgree, 1000, 100);
  while (choice.due(&here, 4096) != Try::Prime) continue;
  ASSERT_EQ(choice.due(&here, 4096), Try::Judge);
  judge(choice, 1, 100, 100);
  EXPECT_EQ(choice.due(&here, 4096), Try::Prime) << "to confirm it, at once";
  EXPECT_EQ(choice.due(&here, 4096), Try::Judge);
}

// Where calls alternate between buffers, each waits for its own turn.
TEST(StorePreference, ATryIsNotForgottenForAnotherPlace) {
  using Try = StorePreference::Try;
  StorePreference choice;
  int here = 0, there = 0;
  judge(choice, StorePreference::kAgree, 1000, 100);
  while (choice.due(&here, 4096) != Try::Prime) continue;
  for (std::uint32_t i = 0; i + 1 < StorePreference::kAgree; ++i) {
    EXPECT_EQ(choice.due(&there, 4096), Try::None);
    ASSERT_EQ(choice.due(&here, 4096), Try::Judge);
    judge(choice, 1, 100, 100);
    EXPECT_EQ(choice.due(&here, 4096), Try::Prime);
  }
}

// What each store does: t and p for through and past the caches.
std::string waysOf(StoreChoice& choice, int stores, std::size_t bytes, const void* to) {
  std::string ways;
  for (int i = 0; i < stores; ++i)
    choice.store(to, bytes, [&](bool past) { ways += past ? 'p' : 't'; });
  return ways;
}

TEST(StoreChoice, AllOfAStoreGoesOneWay) {
  StoreChoice choice;
  int there = 0;
  EXPECT_EQ(waysOf(choice, 4, StoreChoice::kLeast - 1, &there), "tttt");
  // Tried, brought back into the caches, tried: until three tries agree, or for as long as they do not.
  EXPECT_EQ(waysOf(choice, 3, StoreChoice::kLeast, &there), "tpttp");
  int elsewhere = 0;
  EXPECT_EQ(waysOf(choice, 2, StoreChoice::kLeast, &elsewhere), "tt") << "none is back yet";
  judge(choice.preference(), StorePreference::kAgree, 1e9, 1e-9);
  EXPECT_EQ(waysOf(choice, 3, StoreChoice::kLeast, &there), "ppp");
  EXPECT_EQ(waysOf(choice, 1, StoreChoice::kLeast - 1, &there), "t");
}

// Either way's time comes from the same store.
TEST(StoreChoice, FindsOutWhichWayIsQuicker) {
  int there = 0;
  for (const bool pastIsQuick : {true, false}) {
    StoreChoice choice;
    judge(choice.preference(), StorePreference::kAgree, pastIsQuick ? 1 : 1e9, 1);
    ASSERT_NE(choice.preference().isPastCaches(), pastIsQuick);
    const auto store = [&](bool past) {
      const double until = nowNs() + (past == pastIsQuick ? 0 : 2e5);
      while (nowNs() < until) continue;
    };
    for (std::size_t i = 0; i < 4 * StorePreference::kTryEvery; ++i)
      choice.store(&there, StoreChoice::kLeast, store);
    EXPECT_EQ(choice.preference().isPastCaches(), pastIsQuick);
  }
}

// Less than copies must win by.
TEST(FoldChoice, GoesPastTheCachesForLess) {
  FoldChoice choice;
  judge(choice.preference(), StorePreference::kAgree, 115, 100);
  EXPECT_FALSE(choice.preference().isPastCaches());
  judge(choice.preference(), StorePreference::kAgree, 125, 100);
  EXPECT_TRUE(choice.preference().isPastCaches());
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
