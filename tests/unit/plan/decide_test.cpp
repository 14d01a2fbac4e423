// SPDX-License-Identifier: Apache-2.0
#include "plan/decide.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../broken_links.h"
#include "plan/arrivals.h"
#include "plan/bind.h"
#include "plan/cache.h"
#include "plan/candidate.h"
#include "plan/forced.h"
#include "sample_machine.h"
#include "schedule/nodes.h"

namespace weft::plan {
namespace {

Tuning tuning() {
  Tuning t;
  t.ranks = 4;
  t.direct = true;
  t.costs = sampleCosts();
  return t;
}

Decision decided(const Call& call, const Tuning& t) {
  Decision decision;
  const Status status = decide(call, t, &decision);
  EXPECT_TRUE(status.ok()) << status.text();
  return decision;
}

std::string chosen(const Call& call, const Tuning& t = tuning()) {
  Decision decision;
  const Status status = decide(call, t, &decision);
  return status.ok() ? decision.schedule.name : status.text();
}

TEST(Choose, SmallOneShotLargeMesh) {
  EXPECT_NE(chosen(callOf(schedule::Collective::AllReduce, 2)).find("one-shot"), std::string::npos);
  EXPECT_NE(chosen(callOf(schedule::Collective::AllReduce, 1 << 20)).find("mesh"),
            std::string::npos);
}

bool isDirect(schedule::Collective collective, std::uint64_t blockBytes, const Tuning& t) {
  return decided(callOf(collective, blockBytes / 4), t).schedule.name.find("staged") ==
         std::string::npos;
}

// A machine whose kernel copies twice as fast as the sample's.
Tuning tuningOfQuickKernel() {
  Tuning t = tuning();
  for (tune::Curve* curve : {&t.costs.machine.cmaPut, &t.costs.machine.cmaTake})
    for (double& rate : curve->at) rate *= 2;
  return t;
}

TEST(Choose, CmaCopiesMediumBlocks) {
  const Tuning quick = tuningOfQuickKernel();
  EXPECT_FALSE(isDirect(schedule::Collective::AllGather, 1 << 10, quick));
  EXPECT_TRUE(isDirect(schedule::Collective::AllGather, 1 << 20, quick));
  EXPECT_FALSE(isDirect(schedule::Collective::AllGather, 64 << 20, quick));
  EXPECT_FALSE(isDirect(schedule::Collective::AllReduce, 1 << 20, quick));
  EXPECT_FALSE(isDirect(schedule::Collective::AllGather, 1 << 20, tuning()))
      << "too little is gained for what another state of the machine may make of it";
  Tuning without = quick;
  without.costs.machine.cmaCallNs = 0;
  EXPECT_FALSE(isDirect(schedule::Collective::AllGather, 1 << 20, without));
}

TEST(Choose, KnobsOverrideTheModel) {
  Tuning t = tuning();
  t.directMin = 100;
  EXPECT_FALSE(isDirect(schedule::Collective::AllGather, 96, t));
  EXPECT_TRUE(isDirect(schedule::Collective::AllGather, 100, t));
  EXPECT_TRUE(isDirect(schedule::Collective::AllGather, 64 << 20, t));
  EXPECT_EQ(decided(callOf(schedule::Collective::AllGather, 1), t).why, "WEFT_DIRECT_MIN");
  t.oneShotMax = 1 << 20;
  const Call limit = callOf(schedule::Collective::AllReduce, 1 << 18),
             beyond = callOf(schedule::Collective::AllReduce, (1 << 18) + 1);
  EXPECT_NE(chosen(limit, t).find("one-shot"), std::string::npos);
  EXPECT_NE(chosen(beyond, t).find("mesh"), std::string::npos);
  EXPECT_EQ(decided(limit, t).why, "WEFT_ONE_SHOT_MAX");
  EXPECT_EQ(decided(limit, t).estimates.size(), 1u);
  t.oneShotMax = 0;
  EXPECT_NE(chosen(callOf(schedule::Collective::AllReduce, 1), t).find("mesh"), std::string::npos);
  t.algorithm = "ring";
  EXPECT_NE(chosen(limit, t).find("ring"), std::string::npos);
  EXPECT_EQ(decided(limit, t).why, "WEFT_ALGO");
}

// Whatever the model says, the cheapest of the forms that it lists is what runs.
TEST(Choose, TakesTheCheapestForm) {
  for (const std::uint32_t ranks : {2u, 3u, 4u, 8u, 16u}) {
    for (std::uint64_t count = 1; count < (64u << 20); count *= 3) {
      for (const auto collective :
           {schedule::Collective::AllReduce, schedule::Collective::AllGather,
            schedule::Collective::Broadcast, schedule::Collective::Gather}) {
        Tuning t = tuning();
        t.ranks = ranks;
        const Call call = callOf(collective, count);
        const Decision decision = decided(call, t);
        ASSERT_FALSE(decision.estimates.empty());
        const auto weight = [](const Estimate& way) {  // kernel copies must promise a third less
          return way.ns * (way.name.ends_with(":direct") ? 1.5 : 1);
        };
        const Estimate best = *std::ranges::min_element(decision.estimates, {}, weight);
        Call forced = call;
        forced.algorithm = best.name;
        EXPECT_EQ(decision.schedule.name, chosen(forced, t)) << best.name << " " << count;
        EXPECT_EQ(decision.why, "the model");
      }
    }
  }
}

// Between hosts the links decide: few rounds for short messages, few bytes for long ones.
TEST(Choose, TwoLevelsBetweenHosts) {
  Tuning t = tuning();
  t.ranks = 8;
  t.direct = false;
  t.nodes = schedule::Nodes::even(2, 4);
  const auto call = [](std::uint64_t bytes) {
    return callOf(schedule::Collective::AllReduce, bytes / 4);
  };
  EXPECT_EQ(chosen(call(1 << 20), t).find("two-level"), std::string::npos) << "one host";
  t.costs.between = Between{t.nodes, 20e3, 1, 1e3};
  EXPECT_NE(chosen(call(8), t).find("one-shot"), std::string::npos) << chosen(call(8), t);
  EXPECT_NE(chosen(call(16 << 20), t).find("two-level"), std::string::npos);
  Call reproducible = call(16 << 20);
  reproducible.reproducible = true;
  EXPECT_EQ(chosen(reproducible, t).find("two-level"), std::string::npos);
}

// The most messages to other hosts that one of a few ranks sends or gets.
std::size_t messagesOf(const Call& call, const Tuning& t) {
  const Decision decision = decided(call, t);
  std::size_t most = 0;
  for (const std::uint32_t rank : {0u, 1u, t.ranks / 2, t.ranks - 1}) {
    std::size_t sent = 0, received = 0;
    for (const schedule::Op& op : decision.schedule.program(rank).ops)
      if (op.hasPeer() && t.nodes[op.peer] != t.nodes[rank])
        ++(op.kind == schedule::OpKind::Put ? sent : received);
    most = std::max({most, sent, received});
  }
  return most;
}

TEST(Choose, ShortMessagesTakeLogarithmicallyManyBetweenManyHosts) {
  using enum schedule::Collective;
  for (const std::uint32_t localRanks : {1u, 8u}) {
    const Tuning t = hosts(1024, localRanks);
    for (const auto collective : {AllReduce, ReduceScatter, Reduce, Barrier})
      EXPECT_LE(messagesOf(callOf(collective, collective == Barrier ? 0 : 2), t), 22u)
          << schedule::nameOf(collective) << ", " << localRanks << " a host";
  }
  for (const auto collective : {AllGather, Broadcast})
    EXPECT_LE(messagesOf(callOf(collective, 2), hosts(1024, 1)), 22u);
}

TEST(Choose, SumsKeepTheirOrderOnOneHostAndWhereThatIsAskedFor) {
  Call call = callOf(schedule::Collective::AllReduce, 2);
  const auto addsInRankOrder = [&](const Tuning& t) {
    const std::string name = chosen(call, t);
    return name.find("one-shot") != std::string::npos || name.find("mesh") != std::string::npos;
  };
  EXPECT_TRUE(addsInRankOrder(oneHost(256)));
  EXPECT_FALSE(addsInRankOrder(oneHost(257)));  // few of a crowd are reached
  EXPECT_FALSE(addsInRankOrder(hosts(1024, 1)));
  call.reproducible = true;
  EXPECT_TRUE(addsInRankOrder(hosts(1024, 1)));
  EXPECT_TRUE(addsInRankOrder(hosts(1024, 8)));
  EXPECT_TRUE(addsInRankOrder(oneHost(1024)));
}

// The model knows what the binder asks for.
TEST(Choose, WhatIsChosenFitsIntoStagingMemory) {
  for (const Tuning& t : {oneHost(256), oneHost(1024), hosts(256, 1), hosts(1024, 8)})
    for (int c = 0; c <= static_cast<int>(schedule::Collective::Barrier); ++c)
      for (const std::uint64_t count : {std::uint64_t{2}, std::uint64_t{1} << 20}) {
        const auto collective = static_cast<schedule::Collective>(c);
        const Call call =
            callOf(collective, collective == schedule::Collective::Barrier ? 0 : count);
        std::unique_ptr<Plan> plan;
        const Status status = bindDecision(decided(call, t), call, t, targetOf(t, 1), &plan);
        EXPECT_TRUE(status.ok()) << status.text();
      }
}

TEST(Choose, UnevenNodesHaveTwoLevelsToo) {
  Tuning t = tuning();
  t.ranks = 5;
  t.nodes = {0, 1, 1, 0, 1};
  for (const char* const name : {"two-level", "two-level-ring"}) {
    Call call = callOf(schedule::Collective::AllReduce, 1000);
    call.algorithm = name;
    const std::string result = chosen(call, t);
    EXPECT_EQ(result.find("fix: choose two-level") != std::string::npos,
              std::string_view(name) == "two-level-ring")
        << result;
  }
}

TEST(Choose, ForcedAlgorithmIsTakenOrRefused) {
  Call call = callOf(schedule::Collective::AllReduce, 1 << 20);
  call.algorithm = "ring";
  EXPECT_NE(chosen(call).find("ring"), std::string::npos);
  call.algorithm = "rnig";
  EXPECT_NE(chosen(call).find("unknown algorithm 'rnig'"), std::string::npos);
  call.algorithm = "mesh:sideways";
  EXPECT_NE(chosen(call).find("unknown protocol"), std::string::npos);
  Tuning without = tuning();
  without.direct = false;
  call.algorithm = "mesh:direct";
  EXPECT_NE(chosen(call, without).find("cannot write into its peers' buffers"), std::string::npos);
}

TEST(Choose, TreesNeedLinks) {
  Call call = callOf(schedule::Collective::ReduceScatter, 1 << 20);
  call.algorithm = "forest";
  Tuning t = tuning();
  EXPECT_NE(chosen(call, t).find("these are not known"), std::string::npos) << chosen(call, t);
  t.links = test::brokenLinks(t.ranks);
  EXPECT_NE(chosen(call, t).find("reduce-scatter forest"), std::string::npos) << chosen(call, t);
  call.op = reduce::RedOp::Epilogue;
  EXPECT_NE(chosen(call, t).find("which no epilogue takes"), std::string::npos) << chosen(call, t);
}

TEST(Choose, KnobIsForTheCollectivesThatHaveIt) {
  Tuning t = tuning();
  t.algorithm = "ring";
  EXPECT_NE(chosen(callOf(schedule::Collective::AllReduce, 1 << 20), t).find("ring"),
            std::string::npos);
  const Call barrier = callOf(schedule::Collective::Barrier, 0);
  EXPECT_EQ(chosen(barrier, t), chosen(barrier));
  EXPECT_EQ(decided(barrier, t).why, "the model");
  t.algorithm = "rnig";
  EXPECT_NE(chosen(barrier, t).find("WEFT_ALGO: unknown algorithm 'rnig'; fix: auto, model, "),
            std::string::npos);
  Decision none;
  EXPECT_EQ(decide(barrier, t, &none).data().variable, "WEFT_ALGO");
}

TEST(Choose, ReproducibleRefusesOtherOrders) {
  Call call = callOf(schedule::Collective::AllReduce, 1 << 20);
  call.reproducible = true;
  EXPECT_NE(chosen(call).find("mesh"), std::string::npos);
  call.algorithm = "circulant";
  EXPECT_NE(chosen(call).find("rank order"), std::string::npos);
}

TEST(Choose, UnevenBlocksAreJudgedByTheLongest) {
  const std::size_t counts[] = {1, 1, 1, 1 << 20};
  Call call = callOf(schedule::Collective::AllGather, (1 << 20) + 3);
  call.counts = counts;
  const std::string large = chosen(call);
  const std::size_t small[] = {1, 1, 1, 1};
  call.counts = small;
  EXPECT_NE(chosen(call), large);
}

// A step is a reduce-scatter and the all-gather of its name.
TEST(Decide, AStepNeedsTheAllGatherToo) {
  std::vector<schedule::Algorithm> list(schedule::algorithms().begin(),
                                        schedule::algorithms().end());
  std::erase_if(list, [](const schedule::Algorithm& a) {
    return a.collective == schedule::Collective::AllGather && a.name == "ring";
  });
  const auto before = schedule::exchangeAlgorithms(list);
  Call step = callOf(schedule::Collective::AllReduce, 1000);
  step.op = reduce::RedOp::Epilogue;
  EXPECT_NE(chosen(step).find("step mesh"), std::string::npos);
  step.algorithm = "ring";
  EXPECT_NE(chosen(step).find("algorithm 'ring' has no all-gather of its name"), std::string::npos);
  schedule::exchangeAlgorithms(before);
}

// What is forced has its price among the others'.
TEST(Decide, EstimatesCoverWhatIsForced) {
  Call call = callOf(schedule::Collective::AllReduce, 1000);
  const std::size_t automatic = decided(call, tuning()).estimates.size();
  call.algorithm = "ring";
  const Decision ring = decided(call, tuning());
  EXPECT_EQ(ring.why, "the call's algorithm");
  EXPECT_EQ(ring.estimates.size(), automatic + 1);
  EXPECT_EQ(ring.estimates[0].name, "ring");
  call.algorithm = "mesh";
  EXPECT_EQ(decided(call, tuning()).estimates.size(), automatic);
}

Tuning sharing(bool all) {
  Tuning t = tuning();
  t.shares = true;
  t.sharesAll = all;
  return t;
}

TEST(ChooseShared, WhereItGainsAndMemoryIsShared) {
  const Call small = callOf(schedule::Collective::AllReduce, 2),
             large = callOf(schedule::Collective::AllReduce, 1 << 18);
  EXPECT_FALSE(decided(small, sharing(false)).shared.has_value());
  EXPECT_TRUE(decided(large, sharing(true)).shared.has_value());
  EXPECT_TRUE(decided(large, sharing(false)).shared.has_value());
  EXPECT_FALSE(decided(large, tuning()).shared.has_value());
  EXPECT_FALSE(decided(callOf(schedule::Collective::Barrier, 0), sharing(true)).shared.has_value());
  Call scaled = large;
  scaled.op = reduce::RedOp::PreMulSum;
  EXPECT_FALSE(decided(scaled, sharing(true)).shared.has_value());
}

// Asking whether all buffers are shared costs a round, in vain if they are not.
TEST(ChooseShared, LaterWhereItMayBeInVain) {
  const auto firstShared = [](bool all) {
    std::uint64_t count = 1;
    while (!decided(callOf(schedule::Collective::AllGather, count), sharing(all)).shared)
      count += count / 16 + 1;
    return count;
  };
  EXPECT_LT(firstShared(true), firstShared(false));
}

TEST(ChooseShared, ForcedIsAWishAndTakesNoProtocol) {
  Call call = callOf(schedule::Collective::AllReduce, 1);
  call.algorithm = "shared";
  EXPECT_TRUE(decided(call, sharing(true)).shared.has_value());
  EXPECT_FALSE(decided(call, sharing(false)).schedule.shared);
  call.algorithm = "shared:staged";
  EXPECT_NE(chosen(call, sharing(true)).find("'shared' lands nowhere"), std::string::npos);
  call.algorithm = "mesh";
  EXPECT_FALSE(decided(call, sharing(true)).shared.has_value());
}

TEST(ChooseShared, ByCmaWhereThatGains) {
  Tuning t = sharing(false);
  t.costs.machine = tuningOfQuickKernel().costs.machine;
  t.direct = true;
  EXPECT_TRUE(decided(callOf(schedule::Collective::AllReduce, 1 << 16), t).copies);
  EXPECT_FALSE(decided(callOf(schedule::Collective::AllReduce, 16), t).copies);
  EXPECT_FALSE(decided(callOf(schedule::Collective::AllReduce, 1 << 28), t).copies);
  EXPECT_FALSE(decided(callOf(schedule::Collective::AllGather, 1 << 16), t).copies)
      << "its blocks land directly";
  EXPECT_FALSE(decided(callOf(schedule::Collective::AllReduce, 1 << 16), sharing(true)).copies)
      << "threads need no CMA";
  Call forced = callOf(schedule::Collective::AllReduce, 16);
  forced.algorithm = "shared:direct";
  EXPECT_TRUE(decided(forced, t).copies);
  t.direct = false;
  EXPECT_NE(chosen(forced, t).find("cannot write into its peers' buffers"), std::string::npos);
  forced.algorithm = "shared";
  EXPECT_FALSE(decided(forced, t).copies);
}

TEST(BindShared, StoresWhatItComputesAtOnceAndKnowsHowFarPeersReach) {
  constexpr std::uint32_t kRanks = 4;
  const BindTarget target{
      .rank = 1, .ranks = kRanks, .arrivalSlots = kRanks * 32, .budget = {1 << 20, 1 << 18}};
  const Call call = callOf(schedule::Collective::AllReduce, 40000);
  std::unique_ptr<Plan> plan;
  ASSERT_TRUE(bindSchedule(*decided(call, sharing(true)).shared, call, target, &plan).ok());
  EXPECT_EQ(plan->segments, 1u);
  EXPECT_EQ(plan->tells, kRanks - 1);
  EXPECT_EQ(plan->opening, 2 * (kRanks - 1));
  EXPECT_EQ(plan->sharedIn, 160000u);
  EXPECT_EQ(plan->sharedOut, 160000u);
  const auto fold = std::ranges::find(plan->ops, BoundOp::Kind::Fold, &BoundOp::kind);
  ASSERT_NE(fold, plan->ops.end());
  EXPECT_EQ(fold->operands, kRanks);
  EXPECT_EQ(fold->spread, kRanks - 1);
  EXPECT_EQ(std::ranges::count(plan->ops, BoundOp::Kind::Raise, &BoundOp::kind), kRanks - 1);
  EXPECT_EQ(std::ranges::count(plan->ops, BoundOp::Kind::Store, &BoundOp::kind), 0);
}

TEST(BindShared, CachedWithWhatToDoOtherwise) {
  const BindTarget target{.rank = 0, .ranks = 2, .arrivalSlots = 64, .budget = {1 << 20, 1 << 18}};
  Tuning t = sharing(false);
  t.ranks = 2;
  PlanCache cache(t, target);
  const Plan* plan = nullptr;
  ASSERT_TRUE(cache.find(callOf(schedule::Collective::ReduceScatter, 10000000), &plan).ok());
  EXPECT_NE(plan->opening, 0u);
  ASSERT_NE(plan->otherwise, nullptr);
  EXPECT_EQ(plan->otherwise->opening, 0u);
  EXPECT_NE(plan->otherwise->fingerprint, plan->fingerprint);
}

// Whatever ranks must agree on changes the fingerprint.
TEST(Fingerprint, CoversEveryArgument) {
  const Call base = callOf(schedule::Collective::Reduce, 100);
  const std::uint64_t same = fingerprintOf(base, 4, "mesh");
  EXPECT_EQ(fingerprintOf(base, 4, "mesh"), same);
  Call other = base;
  other.count = 101;
  EXPECT_NE(fingerprintOf(other, 4, "mesh"), same);
  other = base;
  other.type = reduce::DType::I32;
  EXPECT_NE(fingerprintOf(other, 4, "mesh"), same);
  other = base;
  other.op = reduce::RedOp::Max;
  EXPECT_NE(fingerprintOf(other, 4, "mesh"), same);
  other = base;
  other.root = 1;
  EXPECT_NE(fingerprintOf(other, 4, "mesh"), same);
  other = base;
  other.reproducible = true;
  EXPECT_NE(fingerprintOf(other, 4, "mesh"), same);
  const std::size_t counts[] = {1, 2, 3, 94};
  other = base;
  other.counts = counts;
  EXPECT_NE(fingerprintOf(other, 4, "mesh"), same);
  EXPECT_NE(fingerprintOf(base, 4, "ring"), same);
  EXPECT_NE(fingerprintOf(base, 5, "mesh"), same);
}

}  // namespace
}  // namespace weft::plan
