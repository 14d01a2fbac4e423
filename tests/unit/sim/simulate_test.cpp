// SPDX-License-Identifier: Apache-2.0
// Times that are computed by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "fabric_job.h"
#include "plan/polls.h"

namespace weft::sim {
namespace {

using enum schedule::Collective;
using Kind = plan::BoundOp::Kind;

constexpr double kAlpha = 3000, kRate = 10;  // ns, bytes a ns

std::string mesh(std::uint32_t ranks) {
  return "nodes 1 ranks " + std::to_string(ranks) + "\nmesh all gbit 80 us 3\n";
}

TEST(Simulate, OnePutTakesAlphaAndItsBytes) {
  FabricJob job(networkOf(mesh(2)), idealMachine());
  job.setting().messageNs = 100;
  EXPECT_DOUBLE_EQ(job.ns(callOf(Broadcast, 1000, "direct")), 100 + kAlpha + 4000 / kRate + 100);
}

TEST(Simulate, ARingTakesItsSteps) {
  for (const std::uint32_t n : {2u, 3u, 4u, 8u}) {
    FabricJob job(networkOf(mesh(n)), idealMachine());
    const double block = 4096;
    const double ns = job.ns(callOf(AllReduce, n * 1024, "ring"));
    EXPECT_NEAR(ns, 2 * (n - 1) * (kAlpha + block / kRate), 0.01) << n;
  }
}

// All ports at once: two steps, whatever the number of ranks.
TEST(Simulate, AMeshTakesTwoSteps) {
  for (const std::uint32_t n : {2u, 5u, 8u}) {
    FabricJob job(networkOf(mesh(n)), idealMachine());
    EXPECT_NEAR(job.ns(callOf(AllReduce, n * 1024, "mesh")), 2 * (kAlpha + 4096 / kRate), 0.01)
        << n;
  }
}

// Puts leave one after the other, as their core makes them, and a core sees to them as they come.
TEST(Simulate, ACoreTakesItsTimeForEachMessage) {
  FabricJob job(networkOf(mesh(8)), idealMachine());
  job.setting().messageNs = 50;
  EXPECT_NEAR(job.ns(callOf(AllGather, 1024, "mesh")), 7 * 50 + kAlpha + 4096 / kRate + 50, 0.01);
}

// What comes at once is seen to one after the other: the root of a gather.
TEST(Simulate, ManyMessagesAtOnceWaitForTheirReceiver) {
  FabricJob job(networkOf(mesh(8)), idealMachine());
  job.setting().messageNs = 50;
  EXPECT_NEAR(job.ns(callOf(Gather, 1024, "direct")), 50 + kAlpha + 4096 / kRate + 7 * 50, 0.01);
  job.setting().stragglers = {{0, 10}};
  EXPECT_NEAR(job.ns(callOf(Gather, 1024, "direct")), 50 + kAlpha + 4096 / kRate + 7 * 500, 0.01);
}

// Two ranks of a node, each with two blocks for the other node, share one rail.
// In memory, too: all have come after three quarters of the way, and then each line is read.
TEST(Simulate, AMessageInMemoryIsReadByItsReceiver) {
  tune::Machine machine = idealMachine();
  machine.exchangeNs = 400;
  for (const std::uint32_t n : {2u, 8u, 16u}) {
    FabricJob job(networkOf("nodes 1 ranks " + std::to_string(n) + "\nmemory gbit 100 us 1\n"),
                  machine);
    EXPECT_NEAR(job.ns(callOf(Gather, 2, "direct")), 300 + (n - 1) * 100, 0.01) << n;
  }
}

TEST(Simulate, ARailIsSharedFairly) {
  FabricJob job(networkOf("nodes 2 ranks 2\nmesh all gbit 800 us 3\n"
                          "rail a gbit 80 us 20 ranks all\n"),
                idealMachine());
  EXPECT_NEAR(job.ns(callOf(AllGather, 1024, "mesh")), 20e3 + 4 * 4096 / kRate, 0.01);
}

TEST(Simulate, ANicOfHalfTheRateTakesTwiceAsLong) {
  const std::string lines = "nodes 2 ranks 1\nrail a gbit 80 us 0 ranks 0\n";
  const plan::Call call = callOf(AllGather, 10000, "mesh");
  FabricJob whole(networkOf(lines), idealMachine());
  FabricJob half(networkOf(lines, {{1, "a", 0.5}}), idealMachine());
  EXPECT_NEAR(whole.ns(call), 4000, 0.01);
  EXPECT_NEAR(half.ns(call), 8000, 0.01);
}

// One rank copies its input: as fast as its core can, or the memory, which is read and written.
TEST(Simulate, MemoryIsAResource) {
  tune::Machine machine = idealMachine();
  machine.load = tune::flat(40);
  machine.copy = tune::flat(8);
  machine.put = machine.take = tune::flat(8);
  machine.stream = tune::flat(8.001);
  const double bytes = 4.0 * (1 << 24);
  const plan::Call call = callOf(AllReduce, 1 << 24, "");
  FabricJob alone(networkOf("nodes 1 ranks 1\nmemory gbit 100 us 1\n"), machine);
  const double quick = alone.ns(call);
  EXPECT_NEAR(quick, bytes / 8, bytes / 8 * 0.01);
  FabricJob slow(networkOf("nodes 1 ranks 1\nmemory gbit 100 us 1\n", {}, 4), machine);
  EXPECT_NEAR(slow.ns(call), 2 * bytes / 4, 1);
  FabricJob wide(networkOf("nodes 1 ranks 1\nmemory gbit 100 us 1\n", {}, 1000), machine);
  EXPECT_NEAR(wide.ns(call), quick, 1);
}

// Ranks of a core take turns, and each turn costs, also that of a rank that finds nothing to do.
TEST(Simulate, RanksShareACore) {
  tune::Machine machine = idealMachine();
  machine.messageNs = 1000;
  machine.handOverNs = 500;
  FabricJob two(networkOf("nodes 1 ranks 2\nmemory gbit 100 us 1\n"), machine);
  EXPECT_NEAR(two.ns(callOf(Barrier, 0, "direct")), 1000, 0.01);
  two.setting().coresOfNode = 1;
  // The first has the core, and gets it again when the second has been told and has told it.
  EXPECT_NEAR(two.ns(callOf(Barrier, 0, "direct")), 1000 + 500 + 1000 + 500, 0.01);
  FabricJob four(networkOf("nodes 1 ranks 4\nmemory gbit 100 us 1\n"), machine);
  four.setting().coresOfNode = 2;
  EXPECT_NEAR(four.ns(callOf(Barrier, 0, "direct")), 3000 + 500 + 3000 + 500, 0.01);
}

// A rank that waits for another core's alone polls for it, as long as a hand-over there and back takes;
// only then others have the core.
TEST(Simulate, ARankPollsForOtherCoresBeforeItLeavesItsOwn) {
  tune::Machine machine = idealMachine();
  machine.handOverNs = 500;
  const double polls = plan::pollsOnSharedCore(3, 2) * 1e3 / plan::kPollsPerMicrosecond;
  plan::Call call = callOf(Broadcast, 2, "direct");
  call.root = 1;  // which has a core to itself, and tells rank 2 first
  const auto told = [&](double messageNs) {
    machine.messageNs = messageNs;
    FabricJob job(networkOf("nodes 1 ranks 3\nmemory gbit 100 us 1\n"), machine);
    job.setting().coresOfNode = 2;
    Result result;
    EXPECT_TRUE(job.run(call, &result).ok());
    return std::pair(result.phases[0][0].end, result.phases[2][0].end);
  };
  const auto [first, second] = told(polls / 4);
  EXPECT_NEAR(nsOf(first), polls / 2, 1) << "it has kept its core";
  EXPECT_GT(nsOf(second), polls / 2);
  const auto [later, atOnce] = told(2 * polls);
  EXPECT_NEAR(nsOf(later), 4 * polls + 250, 1) << "the other looks for its message just now";
  EXPECT_LT(nsOf(atOnce), 4 * polls);
}

// The root of short broadcasts runs ahead as long as it has slots, so that ranks which share its core
// cost it no turn a call.
TEST(Simulate, ARootRunsAheadOfThoseWhoShareItsCore) {
  tune::Machine machine = idealMachine();
  machine.messageNs = 100;
  machine.handOverNs = 1500;
  FabricJob job(networkOf("nodes 1 ranks 4\nmemory gbit 100 us 1\n"), machine);
  job.setting().coresOfNode = 2;
  const plan::Call call = callOf(Broadcast, 2, "direct");
  EXPECT_LT((job.ns(call, 20) - job.ns(call, 4)) / 16, machine.handOverNs / 2);
}

TEST(Simulate, AStragglerHoldsAllUp) {
  FabricJob job(networkOf(mesh(4)), idealMachine());
  job.setting().messageNs = 100;
  const plan::Call call = callOf(AllGather, 1024, "mesh");
  const double quiet = job.ns(call);
  job.setting().stragglers = {{2, 11}};
  EXPECT_NEAR(job.ns(call), quiet + 3 * 1000, 0.01);
}

TEST(Simulate, JitterFollowsFromItsSeed) {
  FabricJob job(networkOf(mesh(4)), idealMachine());
  job.setting().messageNs = 100;
  const plan::Call call = callOf(AllGather, 1024, "mesh");
  const double quiet = job.ns(call);
  job.setting().jitter = {1, 0.1};
  const double one = job.ns(call);
  EXPECT_EQ(job.ns(call), one);
  job.setting().jitter.seed = 2;
  EXPECT_NE(job.ns(call), one);
  EXPECT_NEAR(one, quiet, 0.5 * quiet);
}

// Of a long message: the link is never idle but for the first message's way.
TEST(Simulate, SegmentsAreInFlightTogether) {
  FabricJob job(networkOf(mesh(2)), idealMachine());
  const double bytes = 4.0 * (1 << 24);
  Result result;
  ASSERT_TRUE(job.run(callOf(Broadcast, 1 << 24, "direct"), &result).ok());
  EXPECT_GT(result.messages, 32u);
  EXPECT_GE(result.ns, kAlpha + bytes / kRate);
  EXPECT_LE(result.ns, 1.1 * bytes / kRate);
}

// Segment s waits until the peer has completed segment s - 4, and hears so a latency later.
TEST(Simulate, ALongWayIsLimitedByCredits) {
  FabricJob job(networkOf("nodes 1 ranks 2\nmesh all gbit 80000 us 100\n"), idealMachine());
  Result result;
  ASSERT_TRUE(job.run(callOf(Broadcast, 1 << 22, "direct"), &result).ok());
  const double segments = static_cast<double>(result.messages);
  ASSERT_GT(segments, 8);
  EXPECT_NEAR(result.ns, (2 * std::ceil(segments / 4) - 1) * 100e3, 2000);
}

TEST(Simulate, TellsTheBusiestLinks) {
  FabricJob job(networkOf("nodes 1 ranks 2\nmesh all gbit 80 us 0\n"), idealMachine());
  Result result;
  ASSERT_TRUE(job.run(callOf(Broadcast, 1000, "direct"), &result).ok());
  ASSERT_EQ(result.loads.size(), 1u);
  EXPECT_EQ(job.network().nameOf(result.loads[0].resource), "node0 0->1");
  EXPECT_EQ(result.loads[0].bytes, 4000);
  EXPECT_NEAR(result.loads[0].share, 1, 1e-6);
}

TEST(Simulate, EachOpAndMessageIsSeen) {
  FabricJob job(networkOf(mesh(2)), idealMachine());
  job.setting().messageNs = 100;
  std::vector<Span> spans;
  job.setting().observe = [&](const Span& span) { spans.push_back(span); };
  job.ns(callOf(Broadcast, 1000, "direct"));
  const auto put = std::ranges::find(spans, true, &Span::isMessage);
  ASSERT_NE(put, spans.end());
  EXPECT_EQ(nsOf(put->begin), 100);
  EXPECT_EQ(nsOf(put->end), 100 + kAlpha + 4000 / kRate);
  EXPECT_EQ(put->bytes, 4000u);
  EXPECT_EQ(put->peer, 1u);
}

// ---- what is no time

// Of a ring of two, whose plans are changed before they run.
std::string errorOf(const FabricJob::Mutate& mutate) {
  FabricJob job(networkOf(mesh(2)), idealMachine());
  Result result;
  return job.run(callOf(AllGather, 1024, "ring"), &result, mutate).text();
}

void erase(plan::Plan* plan, Kind kind) {
  std::erase_if(plan->ops, [&](const plan::BoundOp& op) { return op.kind == kind; });
}

TEST(SimulateErrors, APlanWithoutOps) {
  EXPECT_NE(errorOf([](std::uint32_t rank, plan::Plan* plan) {
              if (rank == 1) plan->ops.clear();
            }).find("the plan of rank 1 has no ops, so there is nothing to time"),
            std::string::npos);
}

TEST(SimulateErrors, AnArrivalThatNobodyWaitsFor) {
  const std::string why = errorOf([](std::uint32_t rank, plan::Plan* plan) {
    if (rank == 1) erase(plan, Kind::Wait);
  });
  EXPECT_NE(why.find("rank 0, op 0 of its plan: Put to rank 1, which does not wait for it"),
            std::string::npos)
      << why;
}

TEST(SimulateErrors, AnArrivalThatNobodyRaises) {
  const std::string why = errorOf([](std::uint32_t rank, plan::Plan* plan) {
    if (rank == 1) erase(plan, Kind::Put);
  });
  EXPECT_NE(why.find("of its plan: Wait for rank 1, which sends nothing of the kind"),
            std::string::npos)
      << why;
}

TEST(SimulateErrors, ARankThatCannotGoOn) {
  const std::string why = errorOf([](std::uint32_t, plan::Plan* plan) {
    std::ranges::stable_partition(plan->ops,
                                  [](const plan::BoundOp& op) { return op.kind == Kind::Wait; });
  });
  EXPECT_NE(why.find("rank 0 does not finish: in segment 0 it stands at op 0 (Wait for rank 1)"),
            std::string::npos)
      << why;
}

}  // namespace
}  // namespace weft::sim
