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

}  // namespace
}  // namespace weft::plan
