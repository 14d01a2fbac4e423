// SPDX-License-Identifier: Apache-2.0
#include "plan/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/decide.h"
#include "sample_machine.h"
#include "schedule/registry.h"

namespace weft::plan {
namespace {

constexpr schedule::Collective kAll[] = {
    schedule::Collective::AllReduce,     schedule::Collective::AllGather,
    schedule::Collective::ReduceScatter, schedule::Collective::Broadcast,
    schedule::Collective::Reduce,        schedule::Collective::Gather,
    schedule::Collective::Scatter,       schedule::Collective::AllToAll};

Tuning tuningOf(std::uint32_t ranks, std::uint32_t cores) {
  Tuning t;
  t.ranks = ranks;
  t.direct = t.shares = true;
  t.costs = sampleCosts(cores);
  return t;
}

Decision decided(const Call& call, const Tuning& t) {
  Decision decision;
  const Status status = decide(call, t, &decision);
  EXPECT_TRUE(status.ok()) << status.text();
  return decision;
}

std::vector<Estimate> estimatesOf(const Call& call, const Tuning& t) {
  return decided(call, t).estimates;
}

// Calls `expect` with the prices of what is considered for both. Large pieces are, where there are several.
template <class Expectation>
void compareEach(const std::vector<Estimate>& some, const std::vector<Estimate>& others,
                 Expectation&& expect) {
  std::size_t both = 0;
  for (const Estimate& estimate : some) {
    const auto other = std::ranges::find(others, estimate.name, &Estimate::name);
    if (other == others.end()) continue;
    ++both;
    expect(estimate, *other);
  }
  EXPECT_GE(2 * both, some.size());
}

double priceOf(const char* name, const Call& call, const Tuning& t) {
  for (const Estimate& estimate : estimatesOf(call, t))
    if (estimate.name == name) return estimate.ns;
  ADD_FAILURE() << name << " is not considered";
  return 0;
}

TEST(Model, MoreBytesTakeLonger) {
  for (const schedule::Collective collective : kAll) {
    for (const std::uint32_t ranks : {2u, 4u, 8u}) {
      const Tuning t = tuningOf(ranks, 2);
      std::vector<Estimate> before = estimatesOf(callOf(collective, 16), t);
      for (std::uint64_t count = 64; count <= (16u << 20); count *= 4) {
        const std::vector<Estimate> now = estimatesOf(callOf(collective, count), t);
        compareEach(now, before, [&](const Estimate& more, const Estimate& less) {
          EXPECT_GE(more.ns, less.ns) << more.name << " of " << count;
        });
        before = now;
      }
    }
  }
}

// Also what has come costs its receiver.
TEST(Model, TheRootOfAGatherPaysForEachRank) {
  const Call call = callOf(schedule::Collective::Gather, 2);
  const Tuning few = tuningOf(4, 16), many = tuningOf(16, 16);
  EXPECT_GE(priceOf("direct:staged", call, many) - priceOf("direct:staged", call, few),
            12 * many.costs.receiptNs());
}

TEST(Model, RanksThatShareACoreTakeLonger) {
  for (const schedule::Collective collective : kAll) {
    if (schedule::isRooted(collective)) continue;  // few of those ranks work
    for (const std::uint64_t count : {1u, 1000u, 1000000u}) {
      const std::vector<Estimate> apart = estimatesOf(callOf(collective, count), tuningOf(4, 4)),
                                  together = estimatesOf(callOf(collective, count), tuningOf(4, 2));
      compareEach(apart, together, [](const Estimate& alone, const Estimate& shared) {
        EXPECT_LT(alone.ns, shared.ns) << alone.name;
      });
    }
  }
}

// Two ranks of a host of 16 cores have its last cache for themselves.
TEST(Model, CoresThatNoRankUsesCrowdNobody) {
  Tuning few = tuningOf(2, 2), many = tuningOf(2, 16);
  few.costs.machine.sharers = many.costs.machine.sharers = 16;
  EXPECT_EQ(streamMin(2, many.costs), streamMin(2, few.costs));
  EXPECT_LT(streamMin(16, many.costs), streamMin(2, many.costs));
  const Call call = callOf(schedule::Collective::AllReduce, 1 << 20);
  EXPECT_EQ(priceOf("mesh", call, many), priceOf("mesh", call, few));
  many.costs.team.threads = 8;
  EXPECT_LT(streamMin(2, many.costs), streamMin(2, few.costs));
}

// As the engine does: pieces that pay for what sharing costs, and helpers that are worth waking.
TEST(Model, ATeamSharesLongSteps) {
  Tuning alone = tuningOf(2, 16), team = alone;
  team.costs.team = {.threads = 8, .shareNs = 1000, .wakeNs = 20000};
  const auto price = [](std::uint64_t count, const Tuning& t) {
    return priceOf("shared:direct", callOf(schedule::Collective::ReduceScatter, count), t);
  };
  EXPECT_EQ(price(256, team), price(256, alone));
  EXPECT_LT(price(8 << 20, team), price(8 << 20, alone) / 3);
  team.costs.team.wakeNs = 1e12;
  EXPECT_LT(price(4096, team), 1.001 * price(4096, alone));
}

// The kernel lets one write to a process at a time.
TEST(Model, KernelCopiesIntoOneProcessTakeTurns) {
  const Call gather = callOf(schedule::Collective::Gather, 512);
  const Tuning many = tuningOf(16, 16);
  EXPECT_GE(priceOf("direct:direct", gather, many), 15 * many.costs.machine.cmaCallNs);
  EXPECT_LT(priceOf("direct:staged", gather, many), priceOf("direct:direct", gather, many));
}

TEST(Model, OneShotForFewBytesMeshForMany) {
  for (const std::uint32_t ranks : {4u, 8u, 16u}) {
    const Tuning t = tuningOf(ranks, ranks);
    const auto gain = [&](std::uint64_t count) {
      const Call call = callOf(schedule::Collective::AllReduce, count);
      return priceOf("mesh", call, t) / priceOf("one-shot", call, t);
    };
    EXPECT_GT(gain(2), 1.2);
    EXPECT_LT(gain(1 << 20), 0.8);
  }
}

TEST(Model, SharedBuffersGainOnceBytesCount) {
  for (const std::uint32_t ranks : {2u, 4u, 8u}) {
    const Tuning t = tuningOf(ranks, 2);
    for (const schedule::Collective collective :
         {schedule::Collective::AllReduce, schedule::Collective::AllGather,
          schedule::Collective::AllToAll, schedule::Collective::ReduceScatter}) {
      EXPECT_FALSE(decided(callOf(collective, 1), t).shared.has_value());
      EXPECT_TRUE(decided(callOf(collective, 1 << 18), t).shared.has_value());
    }
  }
}

TEST(Model, SlowerHandOversMakeOneRoundWorthMoreBytes) {
  const auto lastOneShot = [](double handOverNs) {
    Tuning t = tuningOf(4, 2);
    t.costs.machine.handOverNs = handOverNs;
    std::uint64_t count = 1;
    for (;; count *= 2) {
      const Call call = callOf(schedule::Collective::AllReduce, count);
      if (priceOf("mesh", call, t) < priceOf("one-shot", call, t)) return count;
    }
  };
  EXPECT_LT(lastOneShot(100), lastOneShot(10000));
}

// Sanity of any input: finite, and no less than nothing.
// Ranks of one node without memory in common; of a ring's cables some pairs have none.
Tuning cabled(std::uint32_t ranks, bool isRing) {
  Tuning t = tuningOf(ranks, ranks);
  t.direct = t.shares = false;
  Cables cables;
  cables.mostPlaces = ranks;
  cables.latencyNs = 3000;
  for (std::uint32_t a = 0; a < ranks; ++a) {
    cables.places.push_back(a);
    for (std::uint32_t b = 0; b < ranks; ++b) {
      const bool isNext = (a + 1) % ranks == b || (b + 1) % ranks == a;
      cables.bytesPerNs.push_back(a != b && (isNext || !isRing) ? 12.5 : 0);
    }
  }
  t.costs.cables = cables;
  return t;
}

TEST(Model, ANodesPairWithoutACableIsNoWay) {
  constexpr double kSecond = 1e9;
  for (const schedule::Collective collective : kAll) {
    const Call call = callOf(collective, 4096);
    for (const Estimate& whole : estimatesOf(call, cabled(8, false))) {
      EXPECT_GT(whole.ns, 3000) << whole.name;
      EXPECT_LT(whole.ns, kSecond) << whole.name;
    }
    bool someWant = false;
    for (const Estimate& ring : estimatesOf(call, cabled(8, true))) {
      EXPECT_TRUE(std::isfinite(ring.ns)) << ring.name;
      someWant = someWant || ring.ns > kSecond;
    }
    // Of a rooted call the root and its neighbours alone are looked at.
    EXPECT_TRUE(someWant || schedule::isRooted(collective)) << schedule::nameOf(collective);
  }
}

TEST(Model, EveryAlgorithmHasAPrice) {
  for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
    for (const std::uint32_t ranks : {1u, 2u, 4u, 8u, 33u}) {
      const std::uint32_t localRanks = ranks % 2 == 0 && ranks > 2 ? 2 : 1;
      if (algorithm.levels != schedule::Levels::One && localRanks == 1) continue;
      const schedule::Schedule schedule =
          algorithm.make({.ranks = ranks, .localRanks = localRanks});
      for (const std::uint64_t count :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 30}) {
        const double ns = estimateNs(schedule, callOf(algorithm.collective, count), sampleCosts());
        EXPECT_TRUE(ns >= 0 && ns < 1e15) << algorithm.name << " on " << ranks << ": " << ns;
      }
    }
  }
}

}  // namespace
}  // namespace weft::plan
