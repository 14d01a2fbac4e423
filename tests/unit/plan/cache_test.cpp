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

}  // namespace
}  // namespace weft::plan
