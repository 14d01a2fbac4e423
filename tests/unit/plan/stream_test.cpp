// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/bind.h"
#include "plan/choose.h"
#include "sample_machine.h"

namespace weft {
namespace {

// The ops of one rank of two that store into Out, for `bytes` in the larger buffer.
std::vector<BoundOp> stores(Collective collective, std::uint64_t bytes, BoundOp::Kind kind) {
  Call call;
  call.collective = collective;
  call.type = DType::F32;
  call.count = bytes / (collective == Collective::AllReduce ? 4 : 8);
  Tuning tuning;
  tuning.ranks = 2;
  tuning.ground = sampleGround();
  Schedule schedule;
  EXPECT_TRUE(choose(call, tuning, &schedule).ok());
  std::unique_ptr<Plan> plan;
  const BindTarget target{.rank = 1,
                          .ranks = 2,
                          .tags = 64,
                          .budget = {std::uint64_t{1} << 20, 256 << 10},
                          .streamMin = 4 << 20};
  EXPECT_TRUE(bindSchedule(schedule, call, target, &plan).ok());
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
  EXPECT_TRUE(allStream(stores(Collective::AllGather, 16 << 20, BoundOp::Kind::Copy)));
  EXPECT_TRUE(allStream(stores(Collective::ReduceScatter, 16 << 20, BoundOp::Kind::Fold)));
  EXPECT_TRUE(allStream(stores(Collective::AllReduce, 16 << 20, BoundOp::Kind::Copy)));
}

TEST(Stream, WhatIsSentOnStaysInIt) {
  EXPECT_TRUE(noneStreams(stores(Collective::AllReduce, 16 << 20, BoundOp::Kind::Fold)));
}

TEST(Stream, SmallResultsStayInIt) {
  EXPECT_TRUE(noneStreams(stores(Collective::AllGather, 1 << 20, BoundOp::Kind::Copy)));
  EXPECT_TRUE(noneStreams(stores(Collective::ReduceScatter, 1 << 20, BoundOp::Kind::Fold)));
}

}  // namespace
}  // namespace weft
