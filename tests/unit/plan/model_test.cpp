// SPDX-License-Identifier: Apache-2.0
#include "plan/model.h"

#include <gtest/gtest.h>

#include "plan/choose.h"
#include "sample_machine.h"
#include "schedule/registry.h"

namespace weft {
namespace {

constexpr Collective kAll[] = {
    Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter, Collective::Broadcast,
    Collective::Reduce,    Collective::Gather,    Collective::Scatter,       Collective::AllToAll};

Tuning tuningOf(std::uint32_t ranks, std::uint32_t cores) {
  Tuning t;
  t.ranks = ranks;
  t.direct = t.shares = true;
  t.ground = sampleGround(cores);
  return t;
}

double priceOf(const char* name, const Call& call, const Tuning& t) {
  for (const Form& form : formsOf(call, t)) {
    if (form.name == name) return form.ns;
  }
  ADD_FAILURE() << name << " is not considered";
  return 0;
}

TEST(Model, MoreBytesTakeLonger) {
  for (const Collective collective : kAll) {
    for (const std::uint32_t ranks : {2u, 4u, 8u}) {
      const Tuning t = tuningOf(ranks, 2);
      std::vector<Form> before = formsOf(callOf(collective, 16), t);
      for (std::uint64_t count = 64; count <= (16u << 20); count *= 4) {
        const std::vector<Form> now = formsOf(callOf(collective, count), t);
        ASSERT_EQ(now.size(), before.size());
        for (std::size_t i = 0; i < now.size(); ++i)
          EXPECT_GE(now[i].ns, before[i].ns) << now[i].name << " of " << count;
        before = now;
      }
    }
  }
}

TEST(Model, RanksThatShareACoreTakeLonger) {
  for (const Collective collective : kAll) {
    if (isRooted(collective)) continue;  // few of those ranks work
    for (const std::uint64_t count : {1u, 1000u, 1000000u}) {
      const std::vector<Form> apart = formsOf(callOf(collective, count), tuningOf(4, 4)),
                              together = formsOf(callOf(collective, count), tuningOf(4, 2));
      for (std::size_t i = 0; i < apart.size(); ++i) EXPECT_LT(apart[i].ns, together[i].ns);
    }
  }
}

TEST(Model, OneShotForFewBytesMeshForMany) {
  for (const std::uint32_t ranks : {4u, 8u, 16u}) {
    const Tuning t = tuningOf(ranks, ranks);
    const auto gain = [&](std::uint64_t count) {
      const Call call = callOf(Collective::AllReduce, count);
      return priceOf("mesh", call, t) / priceOf("one-shot", call, t);
    };
    EXPECT_GT(gain(2), 1.2);
    EXPECT_LT(gain(1 << 20), 0.8);
  }
}

TEST(Model, SharedBuffersGainOnceBytesCount) {
  for (const std::uint32_t ranks : {2u, 4u, 8u}) {
    const Tuning t = tuningOf(ranks, 2);
    for (const Collective collective : {Collective::AllReduce, Collective::AllGather,
                                        Collective::AllToAll, Collective::ReduceScatter}) {
      EXPECT_FALSE(chooseShared(callOf(collective, 1), t).has_value());
      EXPECT_TRUE(chooseShared(callOf(collective, 1 << 18), t).has_value());
    }
  }
}

TEST(Model, SlowerHandOversMakeOneRoundWorthMoreBytes) {
  const auto lastOneShot = [](double handOverNs) {
    Tuning t = tuningOf(4, 2);
    t.ground.machine.handOverNs = handOverNs;
    std::uint64_t count = 1;
    for (;; count *= 2) {
      const Call call = callOf(Collective::AllReduce, count);
      if (priceOf("mesh", call, t) < priceOf("one-shot", call, t)) return count;
    }
  };
  EXPECT_LT(lastOneShot(100), lastOneShot(10000));
}

// Sanity of any input: finite, and no less than nothing.
TEST(Model, EveryAlgorithmHasAPrice) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const std::uint32_t ranks : {1u, 2u, 4u, 8u, 33u}) {
      const std::uint32_t cards = ranks % 2 == 0 && ranks > 2 ? 2 : 1;
      if (algorithm.levels != Levels::One && cards == 1) continue;
      const Schedule schedule = algorithm.make({.ranks = ranks, .cards = cards});
      for (const std::uint64_t count :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 30}) {
        const double ns = estimateNs(schedule, callOf(algorithm.collective, count), sampleGround());
        EXPECT_TRUE(ns >= 0 && ns < 1e15) << algorithm.name << " on " << ranks << ": " << ns;
      }
    }
  }
}

}  // namespace
}  // namespace weft
