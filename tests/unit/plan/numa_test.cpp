// SPDX-License-Identifier: Apache-2.0
// Ranks on several NUMA nodes of a host: what crosses between them, what that costs, and which forms
// the model prefers then.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/candidate.h"
#include "plan/decide.h"
#include "sample_machine.h"

namespace weft::plan {
namespace {

using enum schedule::Collective;

// `ranks` of one host, half of them on each of two nodes, where a byte that crosses is so much slower
// to write and to read.
Tuning twoNodes(std::uint32_t ranks, double put, double take) {
  Tuning t = oneHost(ranks);
  t.nodes = schedule::Nodes::even(ranks / 2, 2);
  for (const std::uint32_t node : t.nodes)
    t.costs.memoryNodes.push_back(static_cast<std::int32_t>(node));
  tune::Machine& m = t.costs.machine;
  for (std::size_t i = 0; i < m.put.at.size(); ++i) {
    m.farPut.at[i] = m.put.at[i] / put;
    m.farTake.at[i] = m.take.at[i] / take;
  }
  return t;
}

Decision decided(schedule::Collective collective, std::uint64_t count, const Tuning& tuning) {
  Decision decision;
  const Status status = decide(callOf(collective, count), tuning, &decision);
  EXPECT_TRUE(status.ok()) << status.text();
  return decision;
}

// The cheapest of those that need no shared buffers, as it may be forced.
std::string bestOf(schedule::Collective collective, std::uint64_t count, const Tuning& tuning) {
  const Decision decision = decided(collective, count, tuning);
  const auto isOther = [](const Estimate& e) { return e.name.starts_with("shared"); };
  std::vector<Estimate> all = decision.estimates;
  std::erase_if(all, isOther);
  return std::ranges::min_element(all, {}, &Estimate::ns)->name;
}

double estimateOf(std::string_view name, const Decision& decision) {
  const auto found = std::ranges::find(decision.estimates, name, &Estimate::name);
  EXPECT_NE(found, decision.estimates.end()) << name;
  return found == decision.estimates.end() ? 0 : found->ns;
}

constexpr auto kAll = {AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, Reduce};
constexpr std::uint64_t kCounts[] = {2, 256, 16384, 1 << 20};

// Where no byte is dearer, forms cost what they cost on one node.
TEST(Numa, NodesAsFastAsOneChangeNoEstimate) {
  for (const auto collective : kAll)
    for (const std::uint32_t ranks : {2u, 4u, 16u})
      for (const std::uint64_t count : kCounts) {
        const Decision one = decided(collective, count, oneHost(ranks));
        Tuning even = twoNodes(ranks, 1, 1), unknown = even;
        unknown.costs.machine = sampleMachine();
        for (const Tuning& tuning : {even, unknown}) {
          const Decision two = decided(collective, count, tuning);
          for (const Estimate& e : one.estimates)
            EXPECT_EQ(estimateOf(e.name, two), e.ns) << e.name;
        }
      }
}

// Staged bytes are written and read across; direct ones are written, those of shared buffers read.
TEST(Numa, PrefersToWriteOrToReadOnTheNearSide) {
  const Tuning dearWrites = twoNodes(4, 4, 1), dearReads = twoNodes(4, 1, 4);
  const auto ratio = [](std::string_view name, schedule::Collective collective, const Tuning& t) {
    const double one = estimateOf(name, decided(collective, 1 << 20, oneHost(4)));
    return estimateOf(name, decided(collective, 1 << 20, t)) / one;
  };
  EXPECT_EQ(ratio("direct:direct", AllToAll, dearReads), 1);
  EXPECT_GT(ratio("direct:direct", AllToAll, dearWrites), 1.5);
  EXPECT_GT(ratio("direct:staged", AllToAll, dearReads), 1.5);
  EXPECT_EQ(ratio("shared", ReduceScatter, dearWrites), 1);
  EXPECT_GT(ratio("shared", ReduceScatter, dearReads), 1.5);
  EXPECT_TRUE(bestOf(AllToAll, 1 << 20, oneHost(4)).starts_with("direct:staged"));
  EXPECT_EQ(bestOf(AllToAll, 1 << 20, dearReads), "direct:direct");
}

// A block crosses once instead of once for each rank there.
TEST(Numa, TwoLevelsSpareTheCrossing) {
  const Tuning tuning = twoNodes(16, 4, 4);
  EXPECT_TRUE(bestOf(AllGather, 1 << 20, tuning).starts_with("two-level"));
  EXPECT_TRUE(bestOf(Broadcast, 1 << 20, tuning).starts_with("two-level"));
  EXPECT_FALSE(bestOf(AllGather, 1 << 20, oneHost(16)).starts_with("two-level"));
}

// Sums stay in rank order, wherever ranks are.
TEST(Numa, SumsOfAHostAreInRankOrder) {
  for (const auto collective : {AllReduce, ReduceScatter, Reduce})
    for (const Candidate& c : automaticOf(callOf(collective, 1 << 20), twoNodes(16, 8, 8)))
      EXPECT_EQ(c.algorithm->order, schedule::SumOrder::Rank) << c.algorithm->name;
}

FarBytes farOf(std::string_view algorithm, schedule::Collective collective, const Tuning& tuning,
               std::uint32_t rank, Protocol protocol = Protocol::Staged) {
  const Call call = callOf(collective, 1 << 20);
  const Candidate candidate{schedule::findAlgorithm(collective, algorithm), protocol};
  return farBytesOf(scheduleOf(candidate, call, tuning), call, tuning.costs, rank);
}

TEST(Numa, CountsWhatCrosses) {
  constexpr double kBlock = 4 << 20;
  const Tuning tuning = twoNodes(8, 2, 2);
  for (const std::uint32_t rank : {0u, 5u}) {
    const FarBytes flat = farOf("mesh", AllGather, tuning, rank);
    EXPECT_EQ(flat.written, 4 * kBlock);
    EXPECT_EQ(flat.read, 0);
    const FarBytes published = farOf("mesh", AllGather, tuning, rank, Protocol::Published);
    EXPECT_EQ(published.written, 0);
    EXPECT_EQ(published.read, 4 * kBlock);
    EXPECT_EQ(farOf("two-level", AllGather, tuning, rank).written, kBlock);
    EXPECT_EQ(farOf("shared", ReduceScatter, tuning, rank).read, 4 * kBlock);
  }
  EXPECT_EQ(farOf("mesh", AllGather, oneHost(8), 0).written, 0);
}

// Of no node, and of another host.
TEST(Numa, OnlyKnownPeersOfTheSameHostAreFar) {
  CostParameters costs = sampleCosts(4);
  EXPECT_FALSE(costs.isFar(0, 3));
  costs.memoryNodes = {0, 1, -1, 0};
  EXPECT_TRUE(costs.isFar(0, 1));
  EXPECT_FALSE(costs.isFar(0, 2) || costs.isFar(2, 1) || costs.isFar(0, 3));
  costs.between = Between{{0, 1, 1, 1}};
  EXPECT_FALSE(costs.isFar(0, 1));
  EXPECT_TRUE(costs.isFar(1, 3));
}

}  // namespace
}  // namespace weft::plan
