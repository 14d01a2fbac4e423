// SPDX-License-Identifier: Apache-2.0
#include "plan/choose.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/bind.h"
#include "plan/cache.h"
#include "sample_machine.h"
#include "schedule/nodes.h"

namespace weft {
namespace {

Tuning tuning() {
  Tuning t;
  t.ranks = 4;
  t.direct = true;
  t.ground = sampleGround();
  return t;
}

std::string chosen(const Call& call, const Tuning& t = tuning()) {
  Schedule schedule;
  const Status status = choose(call, t, &schedule);
  return status.ok() ? schedule.name : status.text();
}

TEST(Choose, SmallOneShotLargeMesh) {
  EXPECT_NE(chosen(callOf(Collective::AllReduce, 2)).find("one-shot"), std::string::npos);
  EXPECT_NE(chosen(callOf(Collective::AllReduce, 1 << 20)).find("mesh"), std::string::npos);
}

bool isDirect(Collective collective, std::uint64_t blockBytes, const Tuning& t) {
  Schedule schedule;
  EXPECT_TRUE(choose(callOf(collective, blockBytes / 4), t, &schedule).ok());
  return schedule.name.find("staged") == std::string::npos;
}

TEST(Choose, TheKernelCopiesMediumBlocks) {
  EXPECT_FALSE(isDirect(Collective::AllGather, 1 << 10, tuning()));
  EXPECT_TRUE(isDirect(Collective::AllGather, 1 << 20, tuning()));
  EXPECT_FALSE(isDirect(Collective::AllGather, 64 << 20, tuning()));
  EXPECT_FALSE(isDirect(Collective::AllReduce, 1 << 20, tuning()));
  Tuning without = tuning();
  without.ground.machine.kernelCallNs = without.ground.machine.kernelNear =
      without.ground.machine.kernelFar = 0;
  EXPECT_FALSE(isDirect(Collective::AllGather, 1 << 20, without));
}

TEST(Choose, KnobsOverrideTheModel) {
  Tuning t = tuning();
  t.directMin = 100;
  EXPECT_FALSE(isDirect(Collective::AllGather, 96, t));
  EXPECT_TRUE(isDirect(Collective::AllGather, 100, t));
  EXPECT_TRUE(isDirect(Collective::AllGather, 64 << 20, t));
  EXPECT_EQ(reasonFor(callOf(Collective::AllGather, 1), t), "WEFT_DIRECT_MIN");
  t.oneShotMax = 1 << 20;
  const Call limit = callOf(Collective::AllReduce, 1 << 18),
             beyond = callOf(Collective::AllReduce, (1 << 18) + 1);
  EXPECT_NE(chosen(limit, t).find("one-shot"), std::string::npos);
  EXPECT_NE(chosen(beyond, t).find("mesh"), std::string::npos);
  EXPECT_EQ(reasonFor(limit, t), "WEFT_ONE_SHOT_MAX");
  EXPECT_EQ(formsOf(limit, t).size(), 1u);
  t.oneShotMax = 0;
  EXPECT_NE(chosen(callOf(Collective::AllReduce, 1), t).find("mesh"), std::string::npos);
  t.algorithm = "ring";
  EXPECT_NE(chosen(limit, t).find("ring"), std::string::npos);
  EXPECT_EQ(reasonFor(limit, t), "WEFT_ALGO");
}

// Whatever the model says, the cheapest of the forms that it lists is what runs.
TEST(Choose, TakesTheCheapestForm) {
  for (const std::uint32_t ranks : {2u, 3u, 4u, 8u, 16u}) {
    for (std::uint64_t count = 1; count < (64u << 20); count *= 3) {
      for (const auto collective : {Collective::AllReduce, Collective::AllGather,
                                    Collective::Broadcast, Collective::Gather}) {
        Tuning t = tuning();
        t.ranks = ranks;
        const Call call = callOf(collective, count);
        const std::vector<Form> forms = formsOf(call, t);
        ASSERT_FALSE(forms.empty());
        const Form best = *std::ranges::min_element(forms, {}, &Form::ns);
        Call forced = call;
        forced.algorithm = best.name;
        EXPECT_EQ(chosen(call, t), chosen(forced, t)) << best.name << " " << count;
        EXPECT_EQ(reasonFor(call, t), "the model");
      }
    }
  }
}

// Between hosts the links decide: few rounds for short messages, few bytes for long ones.
TEST(Choose, TwoLevelsBetweenHosts) {
  Tuning t = tuning();
  t.ranks = 8;
  t.direct = false;
  t.nodes = Nodes::even(2, 4);
  const auto call = [](std::uint64_t bytes) { return callOf(Collective::AllReduce, bytes / 4); };
  EXPECT_EQ(chosen(call(1 << 20), t).find("two-level"), std::string::npos) << "one host";
  t.ground.between = Between{t.nodes, 20e3, 1, 1e3};
  EXPECT_NE(chosen(call(8), t).find("one-shot"), std::string::npos) << chosen(call(8), t);
  EXPECT_NE(chosen(call(16 << 20), t).find("two-level"), std::string::npos);
  Call reproducible = call(16 << 20);
  reproducible.reproducible = true;
  EXPECT_EQ(chosen(reproducible, t).find("two-level"), std::string::npos);
}

TEST(Choose, UnevenNodesHaveTwoLevelsToo) {
  Tuning t = tuning();
  t.ranks = 5;
  t.nodes = {0, 1, 1, 0, 1};
  for (const char* const name : {"two-level", "two-level-ring"}) {
    Call call = callOf(Collective::AllReduce, 1000);
    call.algorithm = name;
    const std::string result = chosen(call, t);
    EXPECT_EQ(result.find("fix: choose two-level") != std::string::npos,
              std::string_view(name) == "two-level-ring")
        << result;
  }
}

TEST(Choose, ForcedAlgorithmIsTakenOrRefused) {
  Call call = callOf(Collective::AllReduce, 1 << 20);
  call.algorithm = "ring";
  EXPECT_NE(chosen(call).find("ring"), std::string::npos);
  call.algorithm = "rnig";
  EXPECT_NE(chosen(call).find("unknown algorithm 'rnig'"), std::string::npos);
  call.algorithm = "mesh:sideways";
  EXPECT_NE(chosen(call).find("unknown landing"), std::string::npos);
  Tuning without = tuning();
  without.direct = false;
  call.algorithm = "mesh:direct";
  EXPECT_NE(chosen(call, without).find("cannot write into its peers' buffers"), std::string::npos);
}

TEST(Choose, KnobIsForTheCollectivesThatHaveIt) {
  Tuning t = tuning();
  t.algorithm = "ring";
  EXPECT_NE(chosen(callOf(Collective::AllReduce, 1 << 20), t).find("ring"), std::string::npos);
  const Call barrier = callOf(Collective::Barrier, 0);
  EXPECT_EQ(chosen(barrier, t), chosen(barrier));
  EXPECT_EQ(reasonFor(barrier, t), "the model");
  t.algorithm = "rnig";
  EXPECT_NE(chosen(barrier, t).find("unknown algorithm 'rnig'"), std::string::npos);
}

TEST(Choose, ReproducibleRefusesOtherOrders) {
  Call call = callOf(Collective::AllReduce, 1 << 20);
  call.reproducible = true;
  EXPECT_NE(chosen(call).find("mesh"), std::string::npos);
  call.algorithm = "circulant";
  EXPECT_NE(chosen(call).find("rank order"), std::string::npos);
}

TEST(Choose, UnevenBlocksAreJudgedByTheLongest) {
  const std::size_t counts[] = {1, 1, 1, 1 << 20};
  Call call = callOf(Collective::AllGather, (1 << 20) + 3);
  call.counts = counts;
  const std::string large = chosen(call);
  const std::size_t small[] = {1, 1, 1, 1};
  call.counts = small;
  EXPECT_NE(chosen(call), large);
}

// Every algorithm of every collective binds, with both landings, on every rank.
TEST(Bind, EveryAlgorithmFitsTheCellsOfACommunicator) {
  for (const std::uint32_t ranks : {1u, 2u, 3u, 4u, 8u, 16u, 33u}) {
    Tuning t = tuning();
    t.ranks = ranks;
    const bool paired = ranks % 2 == 0 && ranks > 2;
    if (paired) t.nodes = Nodes::even(2, ranks / 2);
    for (int c = 0; c <= static_cast<int>(Collective::Barrier); ++c) {
      const auto collective = static_cast<Collective>(c);
      const std::string names = algorithmNames(collective) + ",";
      for (std::size_t at = 0; at < names.size(); at = names.find(',', at) + 1) {
        const std::string name = names.substr(at, names.find(',', at) - at);
        if (name.starts_with("two-level") && !paired) continue;
        if (name == "shared") continue;
        for (const char* landing : {":staged", ":direct"}) {
          const std::string forced = name + landing;
          Call call =
              callOf(collective, landing[1] == 's' ? 1000 : 2 * ranks);  // in the arena, in cells
          call.op = RedOp::PreMulSum;
          call.algorithm = forced;
          Schedule schedule;
          ASSERT_TRUE(choose(call, t, &schedule).ok()) << forced;
          std::unique_ptr<Plan> plan;
          const BindTarget target{.rank = ranks - 1,
                                  .ranks = ranks,
                                  .tags = ranks * (4 * ranks + 16),
                                  .budget = {1 << 20, 256 << 10}};
          const Status bound = bindSchedule(schedule, call, target, &plan);
          EXPECT_TRUE(bound.ok()) << forced << " on " << ranks << ": " << bound.text();
        }
      }
    }
  }
}

Tuning sharing(bool all) {
  Tuning t = tuning();
  t.shares = true;
  t.sharesAll = all;
  return t;
}

TEST(ChooseShared, WhereItGainsAndMemoryIsShared) {
  const Call small = callOf(Collective::AllReduce, 2),
             large = callOf(Collective::AllReduce, 1 << 18);
  EXPECT_FALSE(chooseShared(small, sharing(false)).has_value());
  EXPECT_TRUE(chooseShared(large, sharing(true)).has_value());
  EXPECT_TRUE(chooseShared(large, sharing(false)).has_value());
  EXPECT_FALSE(chooseShared(large, tuning()).has_value());
  EXPECT_FALSE(chooseShared(callOf(Collective::Barrier, 0), sharing(true)).has_value());
  Call scaled = large;
  scaled.op = RedOp::PreMulSum;
  EXPECT_FALSE(chooseShared(scaled, sharing(true)).has_value());
}

// Asking whether all buffers are shared costs a round, in vain if they are not.
TEST(ChooseShared, LaterWhereItMayBeInVain) {
  const auto firstShared = [](bool all) {
    std::uint64_t count = 1;
    while (!chooseShared(callOf(Collective::AllGather, count), sharing(all))) count *= 2;
    return count;
  };
  EXPECT_LT(firstShared(true), firstShared(false));
}

TEST(ChooseShared, ForcedIsAWishAndTakesNoLanding) {
  Call call = callOf(Collective::AllReduce, 1);
  call.algorithm = "shared";
  EXPECT_TRUE(chooseShared(call, sharing(true)).has_value());
  Schedule schedule;
  ASSERT_TRUE(choose(call, sharing(false), &schedule).ok());
  EXPECT_FALSE(schedule.shared);
  call.algorithm = "shared:staged";
  EXPECT_FALSE(choose(call, sharing(true), &schedule).ok());
  call.algorithm = "mesh";
  EXPECT_FALSE(chooseShared(call, sharing(true)).has_value());
}

TEST(ChooseShared, ThroughTheKernelWhereThatGains) {
  Tuning t = sharing(false);
  t.direct = true;
  EXPECT_TRUE(kernelCopiesGain(callOf(Collective::AllReduce, 1 << 16), t));
  EXPECT_FALSE(kernelCopiesGain(callOf(Collective::AllReduce, 16), t));
  EXPECT_FALSE(kernelCopiesGain(callOf(Collective::AllReduce, 1 << 28), t));
  EXPECT_FALSE(kernelCopiesGain(callOf(Collective::AllGather, 1 << 16), t))
      << "its blocks land directly";
  EXPECT_FALSE(kernelCopiesGain(callOf(Collective::AllReduce, 1 << 16), sharing(true)))
      << "threads need no kernel";
  Call forced = callOf(Collective::AllReduce, 16);
  forced.algorithm = "shared:direct";
  EXPECT_TRUE(kernelCopiesGain(forced, t));
  t.direct = false;
  EXPECT_FALSE(kernelCopiesGain(forced, t));
  Schedule schedule;
  EXPECT_FALSE(choose(forced, t, &schedule).ok()) << "it cannot be had";
}

TEST(BindShared, StoresWhatItComputesAtOnceAndKnowsHowFarPeersReach) {
  constexpr std::uint32_t kRanks = 4;
  const BindTarget target{
      .rank = 1, .ranks = kRanks, .tags = kRanks * 32, .budget = {1 << 20, 1 << 18}};
  const Call call = callOf(Collective::AllReduce, 40000);
  std::unique_ptr<Plan> plan;
  ASSERT_TRUE(bindSchedule(*chooseShared(call, sharing(true)), call, target, &plan).ok());
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
  const BindTarget target{.rank = 0, .ranks = 2, .tags = 64, .budget = {1 << 20, 1 << 18}};
  Tuning t = sharing(false);
  t.ranks = 2;
  PlanCache cache(t, target);
  const Plan* plan = nullptr;
  ASSERT_TRUE(cache.find(callOf(Collective::ReduceScatter, 10000000), &plan).ok());
  EXPECT_NE(plan->opening, 0u);
  ASSERT_NE(plan->otherwise, nullptr);
  EXPECT_EQ(plan->otherwise->opening, 0u);
  EXPECT_NE(plan->otherwise->fingerprint, plan->fingerprint);
}

TEST(PlanCache, SameCallSamePlanAndBounded) {
  PlanCache cache(tuning(), {.rank = 0, .ranks = 4, .tags = 128, .budget = {1 << 20, 256 << 10}});
  const Plan* first = nullptr;
  const Plan* again = nullptr;
  ASSERT_TRUE(cache.find(callOf(Collective::AllReduce, 100), &first).ok());
  ASSERT_TRUE(cache.find(callOf(Collective::AllReduce, 100), &again).ok());
  EXPECT_EQ(first, again);
  const std::uint64_t fingerprint = first->fingerprint;
  for (std::uint64_t count = 0; count < 5000; ++count) {
    const Plan* other = nullptr;
    ASSERT_TRUE(cache.find(callOf(Collective::ReduceScatter, count), &other).ok());
    EXPECT_NE(other->fingerprint, fingerprint);
    EXPECT_LE(cache.bytes(), PlanCache::kMaxBytes);
  }
}

// Whatever ranks must agree on changes the fingerprint.
TEST(Fingerprint, CoversEveryArgument) {
  const Call base = callOf(Collective::Reduce, 100);
  const std::uint64_t same = fingerprintOf(base, 4, "mesh");
  EXPECT_EQ(fingerprintOf(base, 4, "mesh"), same);
  Call other = base;
  other.count = 101;
  EXPECT_NE(fingerprintOf(other, 4, "mesh"), same);
  other = base;
  other.type = DType::I32;
  EXPECT_NE(fingerprintOf(other, 4, "mesh"), same);
  other = base;
  other.op = RedOp::Max;
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
}  // namespace weft
