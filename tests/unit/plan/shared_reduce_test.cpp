// SPDX-License-Identifier: Apache-2.0
// A reduce on shared buffers: what a rank makes of the sum goes into the root's buffer, and lies nowhere before.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/bind.h"
#include "sample_machine.h"
#include "schedule/algorithms/generators.h"
#include "schedule/transforms.h"

namespace weft::plan {
namespace {

using Kind = BoundOp::Kind;

Status bound(const schedule::Schedule& schedule, std::uint32_t rank, std::uint64_t count,
             std::unique_ptr<Plan>* plan) {
  Tuning tuning = oneHost(3);
  tuning.shares = true;
  BindTarget target = targetOf(tuning);
  target.rank = rank;
  return bindSchedule(schedule, callOf(schedule::Collective::Reduce, count), target, plan);
}

TEST(SharedReduce, StoresItsPartStraightIntoTheRootsBuffer) {
  const schedule::Schedule schedule = schedule::sharedReduce(3, 1);
  for (const std::uint64_t count : {3u, 1000u, 64u << 20}) {
    std::unique_ptr<Plan> plan;
    const Status status = bound(schedule, 2, count, &plan);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(plan->segments, 1u) << "nothing limits what lies nowhere";
    const auto fold = std::ranges::find(plan->ops, Kind::Fold, &BoundOp::kind);
    ASSERT_NE(fold, plan->ops.end());
    EXPECT_EQ(fold->dst.base, Base::PeerOut);
    EXPECT_EQ(fold->dst.peer, 1u);
    EXPECT_EQ(fold->spread, 0u);
    EXPECT_EQ(fold->crossings, 3u) << "two addends and the result";
    EXPECT_EQ(std::ranges::count(plan->ops, Kind::Store, &BoundOp::kind), 0);
    for (const BoundOp& op : plan->ops)  // it had no memory from some MiB on
      EXPECT_TRUE(op.src.base != Base::Arena && op.dst.base != Base::Arena) << nameOf(op.kind);
    std::unique_ptr<Plan> root;
    ASSERT_TRUE(bound(schedule, 1, count, &root).ok());
    EXPECT_EQ(std::ranges::find(root->ops, Kind::Fold, &BoundOp::kind)->dst.base, Base::Out);
  }
}

// Of two puts of one slot the second would read memory that there is not.
TEST(SharedReduce, WhatIsStagedOnSharedBuffersIsRefused) {
  schedule::Schedule s = schedule::emptySchedule(schedule::Collective::Reduce, "staged", 3, 3, 0);
  s.tmpChunks = 1;
  s.program = [](std::uint32_t me) {
    schedule::Program p;
    if (me == 0) {
      for (const std::uint32_t from : {1u, 2u}) p.wait(from, schedule::out(from), {from});
      return p;
    }
    p.copy(schedule::in(me), schedule::tmp(0), {me});
    p.put(0, schedule::tmp(0), schedule::out(me), {me});
    p.put(0, schedule::tmp(0), schedule::out(me), {me});
    return p;
  };
  std::unique_ptr<Plan> plan;
  const Status status = bound(schedule::openBuffers(std::move(s)), 1, 3000, &plan);
  EXPECT_EQ(status.code(), Code::InternalError);
  EXPECT_NE(status.text().find("stages what it stores to a peer"), std::string::npos)
      << status.text();
}

}  // namespace
}  // namespace weft::plan
