// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_hash.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/cache.h"
#include "sample_machine.h"

namespace weft::plan {
namespace {

std::unique_ptr<Plan> bound(const Call& call, std::uint32_t rank) {
  const Tuning tuning = oneHost(4);
  Decision decision;
  std::unique_ptr<Plan> plan;
  EXPECT_TRUE(decide(call, tuning, &decision).ok());
  EXPECT_TRUE(bindDecision(decision, call, tuning, targetOf(tuning, rank), &plan).ok());
  return plan;
}

TEST(PlanHash, IsThatOfTheOpsAndOfNothingElse) {
  const Call call = callOf(schedule::Collective::AllReduce, 1000);
  EXPECT_EQ(hashOf(*bound(call, 0)), hashOf(*bound(call, 0)));
  std::set<std::uint64_t> hashes;
  for (const std::uint32_t rank : {0u, 1u, 2u, 3u}) hashes.insert(hashOf(*bound(call, rank)));
  hashes.insert(hashOf(*bound(callOf(schedule::Collective::AllReduce, 1001), 0)));
  hashes.insert(hashOf(*bound(callOf(schedule::Collective::AllGather, 1000), 0)));
  EXPECT_EQ(hashes.size(), 6u);
}

TEST(PlanHash, SeesEachFieldOfAnOp) {
  const std::unique_ptr<Plan> plan = bound(callOf(schedule::Collective::AllReduce, 1 << 20), 0);
  const std::uint64_t before = hashOf(*plan);
  const auto differs = [&](auto BoundOp::*field) {
    for (BoundOp& op : plan->ops) {
      const auto old = op.*field;
      op.*field = static_cast<std::remove_cvref_t<decltype(old)>>(!old);
      EXPECT_NE(hashOf(*plan), before);
      op.*field = old;
    }
  };
  differs(&BoundOp::drain);
  differs(&BoundOp::finish);
  differs(&BoundOp::stream);
  differs(&BoundOp::peer);
  differs(&BoundOp::arrival);
  differs(&BoundOp::max);
  differs(&BoundOp::limit);
  EXPECT_EQ(hashOf(*plan), before);
}

TEST(PlanHash, OfARunLeavesOutWhatDoesNotRun) {
  const std::unique_ptr<Plan> plan = bound(callOf(schedule::Collective::AllReduce, 1 << 20), 0);
  plan->otherwise = nullptr;
  const std::uint64_t alone = hashOf(*plan);
  plan->otherwise = bound(callOf(schedule::Collective::AllReduce, 1000), 0);
  plan->cmaCopies = true;
  EXPECT_EQ(hashOfRun(*plan, true), alone);
  EXPECT_NE(hashOfRun(*plan, false), alone);
  plan->cmaCopies = false;
  EXPECT_NE(hashOf(*plan), alone);
  EXPECT_EQ(hashOfRun(*plan, false), alone);
}

}  // namespace
}  // namespace weft::plan
