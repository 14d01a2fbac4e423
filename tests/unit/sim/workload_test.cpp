// SPDX-License-Identifier: Apache-2.0
// Several calls and computation on one clock, with times that are computed by hand.
#include <gtest/gtest.h>

#include "fabric_job.h"

namespace weft::sim {
namespace {

using enum schedule::Collective;

constexpr double kHop = 3000, kLink = 10;  // ns, bytes a ns
constexpr double kBlock = 40960;           // bytes
constexpr double kGather = kHop + kBlock / kLink;

// Phases of the ranks of a fabric, whose calls are all-gathers of kBlock from each member.
class Phases {
 public:
  explicit Phases(const std::string& lines) : network_(networkOf(lines)) {
    setting_.network = &network_;
    setting_.messageNs = 0;
  }
  Phases(const Phases&) = delete;

  Setting& setting() { return setting_; }
  Workload& workload() { return workload_; }

  // Adds a call of all groups; its number.
  std::uint32_t addGather(const Groups& groups) {
    const std::uint32_t ranks = groups.size == 0 ? network_.ranks() : groups.size;
    Planned& one = *planned_.emplace_back(std::make_unique<Planned>());
    one.tuning = plan::hosts(ranks, 1);
    one.tuning.costs.machine = idealMachine();
    one.tuning.costs.between.reset();
    one.call = callOf(AllGather, static_cast<std::uint64_t>(kBlock / 4), "mesh");
    EXPECT_TRUE(plan::decide(one.call, one.tuning, &one.decision).ok());
    Job job;
    job.plan = [&one, groups](std::uint32_t rank,
                              std::unique_ptr<const plan::Plan>* out) -> Status {
      std::unique_ptr<plan::Plan> plan;
      const plan::BindTarget target = plan::targetOf(one.tuning, groups.positionOf(rank));
      WEFT_TRY(plan::bindDecision(one.decision, one.call, one.tuning, target, &plan));
      *out = std::move(plan);
      return {};
    };
    job.regions = [&one](bool inRing) { return plan::targetOf(one.tuning).regions(inRing); };
    job.costs = &one.tuning.costs;
    job.groups = groups;
    workload_.calls.push_back(std::move(job));
    return static_cast<std::uint32_t>(workload_.calls.size() - 1);
  }

  Status run(Result* result) { return simulate(workload_, setting_, result); }
  double ns() {
    Result result;
    const Status done = run(&result);
    EXPECT_TRUE(done.ok()) << done.text();
    return result.ns;
  }

 private:
  struct Planned {
    plan::Tuning tuning;
    plan::Call call;
    plan::Decision decision;
  };
  const Network network_;
  Setting setting_;
  Workload workload_;
  std::vector<std::unique_ptr<Planned>> planned_;
};

std::string cards(std::uint32_t ranks) {
  return "nodes 1 ranks " + std::to_string(ranks) + "\nmesh all gbit 80 us 3\n";
}

Phase computes(std::uint32_t stream, double ns, std::vector<std::uint32_t> after = {}) {
  return {.name = "computes", .stream = stream, .after = std::move(after), .ns = ns};
}
Phase calls(std::uint32_t stream, std::uint32_t call, std::vector<std::uint32_t> after = {}) {
  return {.name = "calls", .stream = stream, .after = std::move(after), .call = call};
}

TEST(Workload, APhaseFollowsTheOneBeforeItInItsStream) {
  Phases job(cards(4));
  const std::uint32_t gather = job.addGather({});
  job.workload().roles = {{computes(0, 500), calls(0, gather), computes(0, 700)}};
  EXPECT_NEAR(job.ns(), 500 + kGather + 700, 0.01);
}

TEST(Workload, WhatIsInTwoStreamsOverlaps) {
  for (const double ns : {100.0, 50e3}) {
    Phases job(cards(4));
    const std::uint32_t gather = job.addGather({});
    job.workload().roles = {{computes(0, 500), calls(1, gather, {0}), computes(0, ns)}};
    EXPECT_NEAR(job.ns(), 500 + std::max(kGather, ns), 0.01) << ns;
  }
}

TEST(Workload, APhaseWaitsForThoseThatItNames) {
  Phases job(cards(4));
  const std::uint32_t gather = job.addGather({});
  job.workload().roles = {
      {computes(0, 500), calls(1, gather, {0}), computes(0, 100), computes(0, 200, {1})}};
  Result result;
  ASSERT_TRUE(job.run(&result).ok());
  EXPECT_NEAR(result.ns, 500 + kGather + 200, 0.01);
  ASSERT_EQ(result.phases.size(), 1u);  // one rank stands for all
  EXPECT_EQ(nsOf(result.phases[0][2].end), 600);
  EXPECT_NEAR(nsOf(result.phases[0][3].begin), 500 + kGather, 0.01);
}

// The same call is made again and again, each time for itself.
TEST(Workload, CallsOfAStreamFollowEachOther) {
  Phases job(cards(3));
  const std::uint32_t gather = job.addGather({});
  job.workload().roles = {{calls(0, gather), calls(0, gather), calls(0, gather)}};
  EXPECT_NEAR(job.ns(), 3 * kGather, 0.01);
}

// Calls of two streams share each link.
TEST(Workload, CallsOfTwoStreamsShareTheLinks) {
  Phases job(cards(3));
  const std::uint32_t one = job.addGather({}), other = job.addGather({});
  job.workload().roles = {{calls(0, one), calls(1, other)}};
  EXPECT_NEAR(job.ns(), kHop + 2 * kBlock / kLink, 0.01);
}

// 2 nodes of 4: pairs inside, pairs apart, and pairs across, all at once.
TEST(Workload, GroupsCallAmongThemselves) {
  const std::string lines =
      "nodes 2 ranks 4\nmesh all gbit 80 us 3\nrail a gbit 160 us 20 ranks all\n";
  const double across = 20e3 + 4 * kBlock / 20;  // four pairs share the rails
  for (const auto& [groups, ns] :
       {std::pair(Groups{2, 1}, kGather), {Groups{2, 2}, kGather}, {Groups{2, 4}, across}}) {
    for (const bool folds : {true, false}) {
      Phases job(lines);
      const std::uint32_t gather = job.addGather(groups);
      job.workload().roles = {{calls(0, gather)}};
      job.setting().folds = folds;
      EXPECT_NEAR(job.ns(), ns, 0.01) << groups.stride;
    }
  }
}

// All ranks wait for the one that comes late.
TEST(Workload, RolesMayDiffer) {
  Phases job(cards(4));
  const std::uint32_t gather = job.addGather({});
  job.workload().roles = {{computes(0, 100), calls(0, gather)},
                          {computes(0, 9000), calls(0, gather)}};
  job.workload().roleOf = [](std::uint32_t rank) { return rank == 2 ? 1u : 0u; };
  Result result;
  ASSERT_TRUE(job.run(&result).ok());
  EXPECT_EQ(result.unfolded, Unfolded::Plans);
  EXPECT_NEAR(result.ns, 9000 + kGather, 0.01);
}

TEST(Workload, AStragglerComputesForLonger) {
  Phases job(cards(4));
  const std::uint32_t gather = job.addGather({});
  job.workload().roles = {{computes(0, 1000), calls(0, gather)}};
  job.setting().stragglers = {{1, 1.5}};
  EXPECT_NEAR(job.ns(), 1500 + kGather, 0.01);
}

// On one core for each rank two phases take as long as one after the other.
TEST(Workload, ARankComputesOnItsCoreIfItIsSaid) {
  Phases job(cards(2));
  job.workload().roles = {{computes(0, 1000), computes(1, 3000)}};
  EXPECT_NEAR(job.ns(), 3000, 0.01);
  job.setting().computesOnCores = true;
  EXPECT_NEAR(job.ns(), 4000, 0.01);
}

void expectError(Phases& job, const std::string& what) {
  Result result;
  const Status done = job.run(&result);
  EXPECT_EQ(done.code(), Code::InternalError);
  EXPECT_NE(done.text().find(what), std::string::npos) << done.text();
}

TEST(Workload, WhatCannotBeIsAnError) {
  Phases job(cards(2));
  const std::uint32_t gather = job.addGather({});
  job.workload().roles = {{computes(0, 1, {0})}};
  expectError(job, "waits for one that does not stand before it");
  job.workload().roles = {{calls(0, gather + 1)}};
  expectError(job, "makes call 1, which is not there");
  job.workload().roles = {{computes(0, -1)}};
  expectError(job, "computes for -1.000000 ns");
  job.workload().roles = {{computes(0, 1)}};
  job.workload().roleOf = [](std::uint32_t rank) { return rank; };
  expectError(job, "rank 1 has role 1, which is not there");
}

TEST(Workload, ARankThatDoesNotCallLeavesTheOthersWaiting) {
  Phases job(cards(2));
  const std::uint32_t gather = job.addGather({});
  job.workload().roles = {{calls(0, gather)}, {computes(0, 1)}};
  job.workload().roleOf = [](std::uint32_t rank) { return rank; };
  expectError(job, "rank 0 does not finish");
}

}  // namespace
}  // namespace weft::sim
