// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/bind.h"
#include "plan/decide.h"
#include "sample_machine.h"

namespace weft::plan {
namespace {

// The ops of one rank of two that store into Out, for `bytes` in the larger buffer.
std::vector<BoundOp> stores(schedule::Collective collective, std::uint64_t bytes,
                            BoundOp::Kind kind) {
  Call call;
  call.collective = collective;
  call.type = reduce::DType::F32;
  call.count = bytes / (collective == schedule::Collective::AllReduce ? 4 : 8);
  Tuning tuning;
  tuning.ranks = 2;
  tuning.costs = sampleCosts();
  Decision decision;
  EXPECT_TRUE(decide(call, tuning, &decision).ok());
  std::unique_ptr<Plan> plan;
  const BindTarget target{.rank = 1,
                          .ranks = 2,
                          .arrivalSlots = 64,
                          .budget = {std::uint64_t{1} << 20, 256 << 10},
                          .streamMin = 4 << 20};
  EXPECT_TRUE(bindSchedule(decision.schedule, call, target, &plan).ok());
  std::vector<BoundOp> found;
  std::ranges::copy_if(plan->ops, std::back_inserter(found), [&](const BoundOp& op) {
    return op.kind == kind && op.dst.base == Base::Out;
  });
  EXPECT_FALSE(found.empty());
  return found;
}

bool allStream(const std::vector<BoundOp>& ops) {
  return std::ranges::all_of(ops, [](const BoundOp& op) { return op.stream; });
}
bool noneStreams(const std::vector<BoundOp>& ops) {
  return std::ranges::none_of(ops, [](const BoundOp& op) { return op.stream; });
}

TEST(Stream, BigResultsPassTheCache) {
  EXPECT_TRUE(allStream(stores(schedule::Collective::AllGather, 16 << 20, BoundOp::Kind::Copy)));
  EXPECT_TRUE(
      allStream(stores(schedule::Collective::ReduceScatter, 16 << 20, BoundOp::Kind::Fold)));
  EXPECT_TRUE(allStream(stores(schedule::Collective::AllReduce, 16 << 20, BoundOp::Kind::Copy)));
}

TEST(Stream, WhatIsSentOnStaysInIt) {
  EXPECT_TRUE(noneStreams(stores(schedule::Collective::AllReduce, 16 << 20, BoundOp::Kind::Fold)));
}

TEST(Stream, SmallResultsStayInIt) {
  EXPECT_TRUE(noneStreams(stores(schedule::Collective::AllGather, 1 << 20, BoundOp::Kind::Copy)));
  EXPECT_TRUE(
      noneStreams(stores(schedule::Collective::ReduceScatter, 1 << 20, BoundOp::Kind::Fold)));
}

}  // namespace
}  // namespace weft::plan
