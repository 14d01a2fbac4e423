// SPDX-License-Identifier: Apache-2.0
// What goes to all peers alike is stored once, where all of them read it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/bind.h"
#include "plan/candidate.h"
#include "plan/decide.h"
#include "plan/memory_costs.h"
#include "sample_machine.h"
#include "schedule/transforms.h"

namespace weft::plan {
namespace {

using enum schedule::Collective;
using Kind = BoundOp::Kind;

Tuning mapped(std::uint32_t ranks) {
  Tuning t = oneHost(ranks);
  t.maps = true;
  return t;
}

// Do all puts of the program that stay in staging memory go to each other rank in turn?
bool goesToAllAlike(const schedule::Program& program, std::uint32_t ranks) {
  std::set<std::uint32_t> peers;
  bool alike = true;
  for (const schedule::Op& op : program.ops) {
    if (op.kind != schedule::OpKind::Put || op.isSignal()) continue;
    if (!program.putsAgain(op)) {
      alike = alike && (peers.empty() || peers.size() == ranks - 1);
      peers.clear();
    }
    peers.insert(op.peer);
  }
  return alike && (peers.empty() || peers.size() == ranks - 1);
}

TEST(Published, TheRegistryKnowsWhatGoesToAllAlike) {
  constexpr std::uint32_t kRanks = 5;
  for (const schedule::Algorithm& a : schedule::algorithms()) {
    if (a.shared || a.levels != schedule::Levels::One || a.collective == Barrier) continue;
    const schedule::Schedule s = schedule::stageOut(a.make({.ranks = kRanks}));
    bool alike = true;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      alike = alike && goesToAllAlike(s.program(rank), kRanks);
    EXPECT_EQ(a.alike, alike) << s.name;
  }
}

std::unique_ptr<Plan> bound(const schedule::Schedule& schedule, const Call& call,
                            const Tuning& tuning, std::uint32_t rank, Status* status) {
  std::unique_ptr<Plan> plan;
  *status = bindSchedule(schedule, call, targetOf(tuning, rank), &plan);
  return plan;
}

std::ptrdiff_t countOf(const Plan& plan, Kind kind) {
  return std::ranges::count(plan.ops, kind, &BoundOp::kind);
}

schedule::Schedule publishedBroadcast(const Call& call, const Tuning& tuning) {
  return scheduleOf({schedule::findAlgorithm(Broadcast, "direct"), Protocol::Published}, call,
                    tuning);
}

TEST(Published, ARootStoresOnceAndTellsAll) {
  constexpr std::uint32_t kRanks = 6;
  const Tuning tuning = mapped(kRanks);
  const Call call = callOf(Broadcast, 1000);
  const schedule::Schedule schedule = publishedBroadcast(call, tuning);
  Status status;
  const auto root = bound(schedule, call, tuning, 0, &status);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(countOf(*root, Kind::Publish), 1);
  EXPECT_EQ(countOf(*root, Kind::Put), 0);
  EXPECT_EQ(countOf(*root, Kind::Raise), kRanks - 1);
  EXPECT_EQ(root->readers.size(), kRanks - 1);
  const auto other = bound(schedule, call, tuning, 3, &status);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(other->readers.empty());
  const BoundOp& copy = other->ops.back();
  EXPECT_EQ(copy.kind, Kind::Copy);
  EXPECT_EQ(copy.src.base, Base::Published);
  EXPECT_EQ(copy.src.peer, 0u);
}

TEST(Published, WhatTravelsWithItsFlagStillDoes) {
  const Tuning tuning = mapped(4);
  const Call call = callOf(Broadcast, 12);
  const schedule::Schedule schedule = publishedBroadcast(call, tuning);
  Status status;
  const auto root = bound(schedule, call, tuning, 0, &status);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(countOf(*root, Kind::PutInline), 3);
  EXPECT_EQ(countOf(*root, Kind::Publish), 0);
}

TEST(Published, WhatDiffersIsRefused) {
  const Tuning tuning = mapped(4);
  const Call call = callOf(ReduceScatter, 1000);
  schedule::Schedule schedule =
      schedule::publishOut(schedule::findAlgorithm(ReduceScatter, "mesh")->make({.ranks = 4}));
  Status status;
  (void)bound(schedule, call, tuning, 0, &status);
  EXPECT_NE(status.text().find("publishes what it does not put to all its peers alike"),
            std::string::npos)
      << status.text();
}

// Rank 0 publishes to ranks 1 and 2; then each of these does `more`.
std::string whyNotBound(void (*more)(schedule::Program& p)) {
  const Tuning tuning = mapped(3);
  schedule::Schedule s = schedule::emptySchedule(Broadcast, "published", 3, 1);
  s.published = true;
  s.tmpChunks = 2;
  s.typical = {0, 1};
  s.program = [more](std::uint32_t me) {
    schedule::Program p;
    for (const std::uint32_t to : {1u, 2u}) {
      if (me == 0) p.put(to, schedule::in(0), schedule::tmp(0), {0});
      if (me == to) p.wait(0, schedule::tmp(0), {0});
    }
    if (me != 0) more(p);
    return p;
  };
  Status status;
  (void)bound(s, callOf(Broadcast, 1000), tuning, 1, &status);
  return status.text();
}

TEST(Published, OnlyItsSenderTouchesIt) {
  const std::string written =
      whyNotBound([](schedule::Program& p) { p.copy(schedule::out(0), schedule::tmp(0), {0}); });
  EXPECT_NE(written.find("writes what another rank published"), std::string::npos) << written;
  const std::string passedOn =
      whyNotBound([](schedule::Program& p) { p.put(0, schedule::tmp(0), schedule::tmp(1), {0}); });
  EXPECT_NE(passedOn.find("passes on what another rank published"), std::string::npos) << passedOn;
}

std::string nameOfChoice(Call call, const Tuning& tuning, std::string algorithm = "") {
  call.algorithm = std::move(algorithm);
  Decision decision;
  const Status status = decide(call, tuning, &decision);
  return status.ok() ? decision.schedule.name : status.text();
}

TEST(Published, ManyReadersPayForIt) {
  const auto isPublished = [](const std::string& name) { return name.ends_with("+published"); };
  for (const schedule::Collective collective : {Broadcast, AllGather}) {
    const Call call = callOf(collective, 1000);
    EXPECT_TRUE(isPublished(nameOfChoice(call, mapped(8)))) << nameOfChoice(call, mapped(8));
    EXPECT_FALSE(isPublished(nameOfChoice(call, oneHost(8))));
    EXPECT_FALSE(isPublished(nameOfChoice(call, mapped(2)))) << "to one peer it is the same";
  }
  EXPECT_TRUE(isPublished(nameOfChoice(callOf(Broadcast, 1000), mapped(2), "direct:published")));
  EXPECT_FALSE(isPublished(nameOfChoice(callOf(Broadcast, 1000), mapped(8), "direct:staged")));
}

// What is put is stored for one peer, of which some are on this core; what is published for all.
TEST(Published, EachLineIsAnotherCoresIfAnyReaderIs) {
  constexpr double kBytes = 64 << 10;
  const tune::Machine machine = sampleCosts(2).machine;
  const MemoryCosts none(machine, kBytes, 0), half(machine, kBytes, 0.5), all(machine, kBytes, 1);
  EXPECT_EQ(none.publish, none.put);
  EXPECT_EQ(all.publish, all.put);
  EXPECT_EQ(half.publish, all.publish);
  EXPECT_LT(half.put, half.publish);
}

TEST(Published, OnlyWhereItCanBe) {
  const Call call = callOf(AllGather, 1000);
  for (const std::string& refused : {nameOfChoice(call, oneHost(4), "mesh:published"),
                                     nameOfChoice(call, mapped(4), "ring:published")})
    EXPECT_NE(refused.find("send the same to all"), std::string::npos) << refused;
}

}  // namespace
}  // namespace weft::plan
