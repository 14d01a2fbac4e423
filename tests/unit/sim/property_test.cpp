// SPDX-License-Identifier: Apache-2.0
// What holds of any job: over random fabrics, collectives and sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "../slow_build.h"
#include "fabric_job.h"
#include "plan/candidate.h"
#include "sim/bound.h"

namespace weft::sim {
namespace {

using enum schedule::Collective;

const int kRuns = test::kSlowBuild ? 12 : test::sweepsAll() ? 4000 : 120;

class Shapes {
 public:
  explicit Shapes(unsigned seed) : random_(seed) {}

  std::uint32_t upTo(std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(1, most)(random_);
  }

  // Nodes of equally many ranks: a mesh, memory or neither, and rails for groups of equal size.
  topology::Fabric fabric() {
    topology::Fabric fabric;
    const std::uint32_t nodes = upTo(4), ranks = nodes == 1 ? 1 + upTo(7) : upTo(6);
    for (std::uint32_t i = 0; i < nodes; ++i)
      fabric.nodes.push_back({"n" + std::to_string(i), ranks});
    if (upTo(4) == 1) fabric.memory = speed();
    if (!fabric.memory && upTo(5) > 1) {
      const topology::LinkSpeed cable = speed();
      for (std::uint32_t a = 0; a < ranks; ++a)
        for (std::uint32_t b = a + 1; b < ranks; ++b) fabric.mesh.push_back({a, b, cable});
    }
    std::uint32_t share = upTo(ranks);
    while (ranks % share != 0) --share;
    const topology::LinkSpeed nic = speed();
    for (std::uint32_t first = 0; first < ranks; first += share) {
      topology::Rail rail{"r" + std::to_string(first), nic, {}};
      for (std::uint32_t r = 0; r < share; ++r) rail.ranks.push_back(first + r);
      fabric.rails.push_back(rail);
    }
    return fabric;
  }

  plan::Call call(const plan::Tuning& tuning) {
    constexpr schedule::Collective kAll[] = {AllReduce, AllGather, ReduceScatter, Broadcast, Reduce,
                                             Gather,    Scatter,   AllToAll,      Barrier};
    const schedule::Collective collective = kAll[upTo(std::size(kAll)) - 1];
    plan::Call call = plan::callOf(collective, collective == Barrier ? 0 : upTo(1u << upTo(18)));
    if (schedule::isRooted(collective)) call.root = static_cast<int>(upTo(tuning.ranks) - 1);
    std::vector<std::string_view> names{""};
    for (const schedule::Algorithm& a : schedule::algorithms())
      if (a.collective == collective && !a.shared && plan::checkFits(a, call, tuning).ok())
        names.push_back(a.name);
    call.algorithm = names[upTo(static_cast<std::uint32_t>(names.size())) - 1];
    return call;
  }

 private:
  topology::LinkSpeed speed() { return {8.0 * upTo(100), 0.5 * upTo(40)}; }
  std::mt19937 random_;
};

Network made(const topology::Fabric& fabric) {
  Network network;
  EXPECT_TRUE(Network::make(fabric, {}, 0, &network).ok());
  return network;
}

// Of the larger buffer.
double bytesOf(const plan::Call& call, std::uint32_t ranks) {
  const bool isVector =
      call.collective == AllReduce || call.collective == Broadcast || call.collective == Reduce;
  return 4.0 * static_cast<double>(call.count) * (isVector ? 1 : ranks);
}

class AnyJob : public ::testing::TestWithParam<int> {
 protected:
  AnyJob()
      : shapes_(static_cast<unsigned>(GetParam())),
        fabric_(shapes_.fabric()),
        job_(made(fabric_), GetParam() % 3 == 0 ? idealMachine() : plan::sampleMachine()) {
    job_.setting().messageNs = GetParam() % 3 == 0 ? 0 : 700;
    call_ = shapes_.call(job_.tuning());
  }

  std::string words() const {
    return plan::describe(call_.collective, call_.count, call_.type, call_.op, call_.root, false) +
           " by " + std::string(call_.algorithm) + " on " + std::to_string(fabric_.nodes.size()) +
           " x " + std::to_string(fabric_.nodes[0].ranks);
  }

  Shapes shapes_;
  topology::Fabric fabric_;
  FabricJob job_;
  plan::Call call_;
};

TEST_P(AnyJob, IsTheSameFolded) {
  Result folded, whole;
  for (const bool evens : {false, true}) {
    job_.setting().evens = evens;
    job_.setting().folds = true;
    ASSERT_TRUE(job_.run(call_, &folded).ok());
    job_.setting().evens = folded.evened;
    job_.setting().folds = false;
    ASSERT_TRUE(job_.run(call_, &whole).ok());
    EXPECT_NEAR(folded.ns, whole.ns, 0.1) << words() << ", " << folded.simulated << " ranks";
    EXPECT_EQ(folded.messages, whole.messages) << words();
    for (const Load& load : folded.loads) {
      const auto same = std::ranges::find(whole.loads, load.resource, &Load::resource);
      ASSERT_NE(same, whole.loads.end()) << words();
      EXPECT_NEAR(load.bytes, same->bytes, 1e-6 * load.bytes) << words();
    }
  }
}

// A program for each rank, or one for all that are alike: the very same events.
TEST_P(AnyJob, IsTheSameByProgramsThatRanksShare) {
  Result own, shared;
  job_.setting().folds = false;
  if (GetParam() % 2 == 0) job_.setting().stragglers = {{0, 1.7}};
  ASSERT_TRUE(job_.run(call_, &own).ok());
  job_.setting().ownPrograms = 0;
  ASSERT_TRUE(job_.run(call_, &shared).ok());
  EXPECT_EQ(own.ns, shared.ns) << words();
  EXPECT_EQ(own.events, shared.events) << words();
  EXPECT_EQ(own.messages, shared.messages) << words();
  EXPECT_EQ(own.slowest, shared.slowest) << words();
}

TEST_P(AnyJob, NeverBeatsTheLinks) {
  const Bound bound =
      boundOf(job_.network(), call_.collective, static_cast<std::uint32_t>(call_.root),
              bytesOf(call_, job_.network().ranks()));
  EXPECT_GE(job_.ns(call_), bound.ns() * (1 - 1e-9)) << words();
}

// But for what another order of the same ops may gain (Graham's anomalies).
constexpr double kAnomaly = 0.95;

TEST_P(AnyJob, IsNoFasterOnSlowerLinks) {
  topology::Fabric slow = fabric_;
  for (topology::MeshLink& link : slow.mesh) link.speed.gbit /= 2;
  for (topology::Rail& rail : slow.rails) rail.speed.gbit /= 2;
  FabricJob other(made(slow), job_.tuning().costs.machine);
  other.setting().messageNs = job_.setting().messageNs;
  if (call_.algorithm.empty()) return;  // another may be chosen there
  EXPECT_GE(other.ns(call_), kAnomaly * job_.ns(call_)) << words();
}

TEST_P(AnyJob, TakesNoLessForMoreBytes) {
  if (call_.algorithm.empty() || call_.collective == Barrier || call_.count < 64) return;
  const double whole = job_.ns(call_);
  call_.count /= 4;
  EXPECT_LE(kAnomaly * job_.ns(call_), whole) << words();
}

// In which order a file names its links does not matter.
TEST_P(AnyJob, IsTheSameRenumbered) {
  topology::Fabric other = fabric_;
  std::ranges::reverse(other.mesh);
  std::ranges::reverse(other.rails);
  FabricJob renumbered(made(other), job_.tuning().costs.machine);
  renumbered.setting().messageNs = job_.setting().messageNs;
  EXPECT_NEAR(renumbered.ns(call_), job_.ns(call_), 0.1) << words();
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyJob, ::testing::Range(0, kRuns));

}  // namespace
}  // namespace weft::sim
