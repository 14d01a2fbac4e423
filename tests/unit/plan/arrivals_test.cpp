// SPDX-License-Identifier: Apache-2.0
// The arrival slots of a communicator, and the room of a schedule, are counted in the programs of a
// few ranks; here in those of all.
#include "plan/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/bind.h"
#include "plan/candidate.h"
#include "plan/staging_map.h"
#include "sample_machine.h"
#include "schedule/algorithms/generators.h"
#include "schedule/nodes.h"
#include "schedule/transforms.h"
#include "tests/unit/slow_build.h"

namespace weft::plan {
namespace {

Tuning tuningOf(std::uint32_t ranks, std::vector<std::uint32_t> nodes) {
  Tuning t;
  t.ranks = ranks;
  t.nodes = std::move(nodes);
  t.direct = t.shares = true;
  t.costs = sampleCosts();
  return t;
}

std::vector<Call> callsOf(schedule::Collective collective, std::uint32_t ranks) {
  Call plain = callOf(collective, 1000);
  std::vector<Call> calls{plain};
  if (collective == schedule::Collective::AllReduce) {
    calls.push_back(plain);
    calls.back().op = reduce::RedOp::Epilogue;  // a step
  }
  if (schedule::isReduction(collective)) {
    calls.push_back(plain);
    calls.back().op = reduce::RedOp::PreMulSum;
  }
  if (schedule::isRooted(collective) && ranks > 1) {
    calls.push_back(plain);
    calls.back().root = static_cast<int>(ranks - 1);
  }
  return calls;
}

// What the ranks fill of each other's regions at most; no less than what the typical ones do.
StagingMap::Room usedBy(const schedule::Schedule& schedule) {
  StagingMap::Room most;
  for (std::uint32_t r = 0; r < schedule.ranks; ++r) {
    const schedule::Program program = schedule.program(r);
    const StagingMap::Room room = StagingMap::mostOf(schedule, program);
    most.arrivals = std::max(most.arrivals, room.arrivals);
    most.slots = std::max(most.slots, room.slots);
    EXPECT_TRUE(StagingMap(schedule, r, program).isTypical()) << schedule.name << ", rank " << r;
  }
  const StagingMap map(schedule, 0, schedule.program(0));
  EXPECT_EQ(map.arrivalsPerRegion(), most.arrivals) << schedule.name;
  EXPECT_EQ(map.slotsPerRegion(), most.slots) << schedule.name;
  return most;
}

// The most arrival slots that any candidate of any call uses.
std::uint32_t usedBy(const Tuning& t) {
  std::uint32_t most = 0;
  for (int c = 0; c <= static_cast<int>(schedule::Collective::Barrier); ++c)
    for (const Call& call : callsOf(static_cast<schedule::Collective>(c), t.ranks))
      for (const Candidate& candidate : candidatesOf(call, t))
        most = std::max(most, usedBy(scheduleOf(candidate, call, t)).arrivals);
  return most;
}

TEST(Arrivals, AsManyAsAnyPlanUsesAndNoMore) {
  for (std::uint32_t ranks = 1; ranks <= (test::kSlowBuild ? 10 : 20); ++ranks) {
    const Tuning t = tuningOf(ranks, {});
    EXPECT_GE(arrivalsPerPeer(t), usedBy(t)) << ranks;
    EXPECT_LE(arrivalsPerPeer(t), std::max(3u, 2 * ranks)) << ranks << ": a ring needs 2n - 1";
  }
}

TEST(Arrivals, OfEvenNodes) {
  const std::uint32_t most = test::kSlowBuild ? 3 : 5;
  for (std::uint32_t localRanks = 2; localRanks <= std::min(4u, most); ++localRanks)
    for (std::uint32_t nodes = 2; nodes <= most; ++nodes) {
      const Tuning t = tuningOf(localRanks * nodes, schedule::Nodes::even(localRanks, nodes));
      EXPECT_GE(arrivalsPerPeer(t), usedBy(t)) << localRanks << " x " << nodes;
    }
}

TEST(Arrivals, OfUnevenNodesInAnyOrder) {
  std::mt19937 random(3);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int trial = 0; trial < (test::kSlowBuild ? 10 : 30); ++trial) {
    const std::uint32_t ranks = 3 + below(12);
    const std::uint32_t nodes = 2 + below(ranks - 2);
    std::vector<std::uint32_t> nodeOf(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) nodeOf[r] = r < nodes ? r : below(nodes);
    std::ranges::shuffle(nodeOf, random);
    const Tuning t = tuningOf(ranks, nodeOf);
    EXPECT_GE(arrivalsPerPeer(t), usedBy(t)) << "trial " << trial;
    EXPECT_LE(arrivalsPerPeer(t), 4 * ranks + 16) << "trial " << trial;
  }
}

// One node of 32 ranks and eight of two: two levels would take a rank for 16 rails.
TEST(Arrivals, TwoLevelsOfVeryUnevenNodesAreRefusedBeforeTheyAreChosen) {
  std::vector<std::uint32_t> nodes(32, 0);
  for (std::uint32_t r = 0; r < 16; ++r) nodes.push_back(1 + r / 2);
  Tuning t = tuningOf(48, nodes);
  t.costs.between = Between{nodes, 20e3, 1, 1e3};
  Call call = callOf(schedule::Collective::AllReduce, 4 << 20);
  for (const Candidate& candidate : automaticOf(call, t))
    EXPECT_NE(candidate.algorithm->name, "two-level");
  const schedule::Algorithm& twoLevel =
      *schedule::findAlgorithm(schedule::Collective::AllReduce, "two-level");
  EXPECT_NE(checkFits(twoLevel, call, t).text().find("arrival slots"), std::string::npos);
}

// With both protocol, in the arena and in arrival slots, on every rank count.
TEST(Bind, EveryCandidateFitsTheArrivalSlotsOfACommunicator) {
  for (const std::uint32_t ranks : {1u, 2u, 3u, 4u, 8u, 16u, 33u}) {
    const bool paired = ranks % 2 == 0 && ranks > 2;
    const Tuning t = tuningOf(
        ranks, paired ? schedule::Nodes::even(2, ranks / 2) : std::vector<std::uint32_t>());
    const BindTarget target{.rank = ranks - 1,
                            .ranks = ranks,
                            .arrivalSlots = ranks * arrivalsPerPeer(t),
                            .budget = {1 << 20, 256 << 10}};
    for (int c = 0; c <= static_cast<int>(schedule::Collective::Barrier); ++c)
      for (const reduce::RedOp op : {reduce::RedOp::Sum, reduce::RedOp::PreMulSum})
        for (const std::uint64_t count : {std::uint64_t{1000}, std::uint64_t{2} * ranks}) {
          Call call = callOf(static_cast<schedule::Collective>(c), count);
          call.op = op;
          for (const Candidate& candidate : candidatesOf(call, t)) {
            std::unique_ptr<Plan> plan;
            const Status bound = bindSchedule(scheduleOf(candidate, call, t), call, target, &plan);
            EXPECT_TRUE(bound.ok())
                << nameOf(candidate, call, t) << " on " << ranks << ": " << bound.text();
          }
        }
  }
}

// Its memory would not do for the others.
TEST(Bind, RefusesTypicalRanksThatStandForTooFew) {
  schedule::Schedule schedule = schedule::prescale(schedule::binomialReduce(8, 0));
  const Call call = callOf(schedule::Collective::Reduce, 1000);
  BindTarget target{.rank = 2, .ranks = 8, .arrivalSlots = 64, .budget = {1 << 20, 256 << 10}};
  std::unique_ptr<Plan> plan;
  EXPECT_TRUE(bindSchedule(schedule, call, target, &plan).ok());
  schedule.typical = {1};  // a leaf, which adds nothing
  EXPECT_NE(bindSchedule(schedule, call, target, &plan).text().find("none of its typical ranks"),
            std::string::npos);
}

TEST(Arrivals, OfAThousandRanksAreCountedAtOnce) {
  EXPECT_EQ(arrivalsPerPeer(tuningOf(1024, schedule::Nodes::even(8, 128))), 2047u);
}

}  // namespace
}  // namespace weft::plan
