// SPDX-License-Identifier: Apache-2.0
// While a call is made again and again, each put goes where the one before it has told the transport that it will.
#include <gtest/gtest.h>

#include <vector>

#include "engine/executor.h"
#include "tests/unit/paged_transport.h"

namespace weft::engine {
namespace {

constexpr std::size_t kShort = 200;

struct Place {
  std::uint32_t peer;
  std::uint64_t arrival, target;
  std::size_t bytes;
  bool operator==(const Place&) const = default;
};

// Hears which puts are expected.
class ExpectingTransport final : public test::PagedTransport {
 public:
  ExpectingTransport()
      : PagedTransport({.ranks = 2,
                        .arrivalSlots = 3,
                        .pairArrivalSlots = 2 * 8,
                        .ring = 8,
                        .arenaBytes = 4096,
                        .ringStages = {{4, 512}, {}}}) {}

  transport::PutResult put(const transport::Put& put) override {
    puts.push_back({put.peer, put.arrival, put.target, put.bytes});
    foreseen.push_back(expected == std::vector{puts.back()});
    expected.clear();
    return transport::PutResult::Done;
  }
  void expectPut(std::uint32_t peer, std::uint64_t arrival, std::uint64_t target,
                 std::size_t bytes) override {
    expected.push_back({peer, arrival, target, bytes});
  }

  std::vector<Place> puts;
  std::vector<Place> expected;  // since the last put
  std::vector<bool> foreseen;   // by put
};

plan::Plan planOfShortPut(bool inRing) {
  plan::Plan plan;
  plan.segmentBytes = kShort;
  plan.inRing = inRing;
  if (inRing) plan.stageBytes = 512;
  plan::BoundOp& put = plan.ops.emplace_back();
  put.kind = plan::BoundOp::Kind::Put;
  put.peer = 1;
  put.arrival = 1;
  put.dst.offset = 64;
  put.max = put.limit = kShort;
  return plan;
}

struct Expecting {
  ExpectingTransport transport;
  watch::Watch watch{transport, 0, {{0, "here", 1}, {1, "here", 1}}, "test"};
  WaitTuning tuning;
  Executor executor{transport, watch, 0, tuning};
  std::vector<std::byte> in = std::vector<std::byte>(kShort);
};

// All but the first, and the first after as many as may be on their way: whether its place is free is not known
// when the one before it is made.
const std::vector<bool> kForeseen{false, true, true, true, false, true, true, true, false};

TEST(ExpectedPuts, AreThoseOfTheNextCall) {
  Expecting rank;
  const plan::Plan plan = planOfShortPut(false);
  for (std::size_t i = 0; i < kForeseen.size(); ++i)
    ASSERT_TRUE(rank.executor.run({.plan = &plan, .in = rank.in.data()}).ok());
  EXPECT_EQ(rank.transport.foreseen, kForeseen);
}

TEST(ExpectedPuts, AreThoseOfTheNextShortCall) {
  Expecting rank;
  const plan::Plan plan = planOfShortPut(true);
  ASSERT_TRUE(rank.executor.run({.plan = &plan, .in = rank.in.data()}).ok());
  ASSERT_TRUE(rank.executor.mayRunAgain(plan));
  for (std::size_t i = 1; i < kForeseen.size(); ++i)
    ASSERT_TRUE(rank.executor.runAgain(plan, rank.in.data(), nullptr).ok());
  EXPECT_EQ(rank.transport.foreseen, kForeseen);
}

// Of such a plan the next segments may be on their way.
TEST(ExpectedPuts, AreNoneOfSegments) {
  Expecting rank;
  plan::Plan plan = planOfShortPut(false);
  plan.segments = 2;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(rank.executor.run({.plan = &plan, .in = rank.in.data()}).ok());
  EXPECT_EQ(rank.transport.puts.size(), 6u);
  EXPECT_TRUE(rank.transport.expected.empty());
}

}  // namespace
}  // namespace weft::engine
