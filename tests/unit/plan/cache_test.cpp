// SPDX-License-Identifier: Apache-2.0
#include "plan/cache.h"

#include <gtest/gtest.h>

#include "sample_machine.h"

namespace weft::plan {
namespace {

const Plan* found(PlanCache& cache, const Call& call) {
  const Plan* plan = nullptr;
  const Status status = cache.find(call, &plan);
  EXPECT_TRUE(status.ok()) << status.text();
  return plan;
}

TEST(PlanCache, SameCallSamePlanAndBounded) {
  const Tuning t = oneHost(4);
  PlanCache cache(t, targetOf(t));
  const Plan* first = found(cache, callOf(schedule::Collective::AllReduce, 100));
  EXPECT_EQ(found(cache, callOf(schedule::Collective::AllReduce, 100)), first);
  const std::uint64_t fingerprint = first->fingerprint;
  for (std::uint64_t count = 0; count < 5000; ++count) {
    const Plan* other = found(cache, callOf(schedule::Collective::ReduceScatter, count));
    EXPECT_NE(other->fingerprint, fingerprint);
    EXPECT_LE(cache.bytes(), PlanCache::mostBytes(4));
  }
}

// As a trainer's buckets come: the same ones in each step.
TEST(PlanCache, KeepsSixtyFourSizesInRotation) {
  for (const Tuning& t : {oneHost(8), hosts(8, 1), hosts(512, 1), hosts(512, 8)}) {
    PlanCache cache(t, targetOf(t));
    for (int round = 0; round < 2; ++round)
      for (std::uint64_t size = 1; size <= 64; ++size)
        found(cache, callOf(schedule::Collective::AllGather, size * 1000));
    EXPECT_EQ(cache.made(), 64u) << t.ranks << " ranks on " << t.nodes.back() + 1 << " nodes";
  }
}

TEST(PlanCache, WhatWasNotUsedForLongestMakesRoom) {
  const Tuning t = oneHost(4);
  PlanCache cache(t, targetOf(t));
  const auto find = [&](std::uint64_t count) {
    found(cache, callOf(schedule::Collective::AllReduce, count));
  };
  std::uint64_t last = 1;
  std::size_t bytes = 0;
  do {  // until one has made room
    bytes = cache.bytes();
    find(++last);
    find(1);
  } while (cache.bytes() > bytes);
  const std::uint64_t made = cache.made();
  find(1);
  find(last);
  find(last - 1);
  EXPECT_EQ(cache.made(), made);
  find(2);
  EXPECT_EQ(cache.made(), made + 1);
}

// Kinds of calls on buffers that may be shared, which therefore ask.
class Asks : public ::testing::Test {
 protected:
  static Tuning tuning() {
    Tuning t = oneHost(4);
    t.shares = true;
    return t;
  }
  bool asks(std::uint64_t count = kCount) {
    return found(cache_, callOf(schedule::Collective::ReduceScatter, count))->opening != 0;
  }
  bool asksAndLearns(bool shared) {
    const bool asked = asks();
    if (asked) cache_.learn(shared);
    return asked;
  }
  void askInVain() {
    for (int i = 0; i < Asking::kInVain; ++i) EXPECT_TRUE(asksAndLearns(false)) << i;
  }

  static constexpr std::uint64_t kCount = 1 << 20;
  const Tuning tuning_ = tuning();
  PlanCache cache_{tuning_, targetOf(tuning_)};
};

TEST_F(Asks, SeldomOnceTheFirstCallsDidInVain) {
  askInVain();
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i < Asking::kSeldom; ++i) EXPECT_FALSE(asks()) << i;
    EXPECT_TRUE(asksAndLearns(false));
  }
}

TEST_F(Asks, AlwaysWhereSomeAreShared) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(asksAndLearns(i % Asking::kInVain == 0)) << i;
}

TEST_F(Asks, AgainOnceBuffersAreShared) {
  askInVain();
  while (!asks()) {
  }
  cache_.learn(true);
  askInVain();
  EXPECT_FALSE(asks());
}

// Of a kind that needs no more room on one rank than on another nobody forgets what he has learnt.
TEST_F(Asks, NoSoonerWherePlansHaveMadeRoom) {
  askInVain();
  const std::uint64_t made = cache_.made(), others = 5000;
  for (std::uint64_t count = 1; count < others; ++count) {
    Call other = callOf(schedule::Collective::AllReduce, count);
    other.algorithm = "mesh";  // one way to price
    found(cache_, other);
  }
  EXPECT_FALSE(asks());
  EXPECT_EQ(cache_.made(), made + others) << "the plan was still there";
}

// Of a kind whose forms calls have tried, and found one the quickest that does not ask.
class Probes : public ::testing::Test {
 protected:
  static Tuning tuning() {
    Tuning t = oneHost(4);
    t.shares = t.tries = true;
    t.costs.cores = 4;
    return t;
  }
  // Finds the next call's plan and runs it where it takes `ns` and its buffers are shared, or not.
  bool asks(double ns, bool shared) {
    const bool asked = find()->opening != 0;
    if (Trial* const trial = cache_.trial()) {
      trial->ran(1e9, 1e9 + ns, asked ? std::optional(shared) : std::nullopt);
      ++timed_;
      if (trial->isDue()) {
        cache_.judge(*trial);
        judged_ = true;
      }
    }
    if (asked) cache_.learn(shared);
    return asked;
  }
  const Plan* find() {
    return found(cache_, callOf(schedule::Collective::AllGather, std::uint64_t{1} << 18));
  }
  // The forms of any buffers are tried: to ask is what takes time.
  void tryAll() {
    while (!judged_) asks(find()->otherwise ? 2e4 : 1e4, false);
  }
  const Tuning tuning_ = tuning();
  PlanCache cache_{tuning_, targetOf(tuning_)};
  int timed_ = 0;
  bool judged_ = false;
};

TEST_F(Probes, SeldomWhereTheFormInUseDoesNotAsk) {
  tryAll();
  int asked = 0;
  for (std::uint32_t i = 0; i < Trial::kQuiet; ++i) asked += asks(1e4, false) ? 1 : 0;
  EXPECT_EQ(asked, int{Trial::kQuiet / Asking::kSeldom});
}

TEST_F(Probes, NoticesThatBuffersAreShared) {
  tryAll();
  std::uint32_t calls = 0;
  while (!asks(1e4, true)) ASSERT_LT(++calls, Asking::kSeldom);
  const int timed = timed_;
  for (int i = 0; i < Trial::kRuns.all; ++i) asks(1e4, true);
  EXPECT_EQ(timed_, timed + Trial::kRuns.all) << "the forms for shared buffers are tried";
}

}  // namespace
}  // namespace weft::plan
