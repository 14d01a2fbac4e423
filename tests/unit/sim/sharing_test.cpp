// SPDX-License-Identifier: Apache-2.0
#include "sim/sharing.h"

#include <gtest/gtest.h>

#include <map>

namespace weft::sim {
namespace {

using Uses = std::vector<Use>;

// Starts what is asked for, and says when each ended.
class Flows {
 public:
  explicit Flows(const std::vector<double>& rates) : sharing(rates) {}

  std::map<std::uint64_t, double> ends() {
    std::map<std::uint64_t, double> all;
    sharing.settle(now);
    while (sharing.nextEnd() != kNever) {
      now = sharing.nextEnd();
      for (const std::uint64_t cookie : sharing.finish(now)) all[cookie] = nsOf(now);
      sharing.settle(now);
    }
    return all;
  }

  Sharing sharing;
  Time now = 0;
};

TEST(Sharing, OneHasAllOfALink) {
  Flows run({10});
  run.sharing.start(run.sharing.addChannel(Uses{{0, 1}}), 1000, 7, 0);
  EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{7, 100}}));
}

// Both at 5 until the shorter is through, then the longer at 10.
TEST(Sharing, TwoOnALinkHaveHalfEach) {
  for (const bool oneChannel : {true, false}) {
    Flows run({10});
    const std::uint32_t a = run.sharing.addChannel(Uses{{0, 1}});
    const std::uint32_t b = oneChannel ? a : run.sharing.addChannel(Uses{{0, 1}});
    run.sharing.start(a, 1000, 1, 0);
    run.sharing.start(b, 3000, 2, 0);
    EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{1, 200}, {2, 400}}));
    EXPECT_EQ(run.sharing.carried(0), 4000);
  }
}

// The textbook's: A and B on link 0, B and C on link 1. B has 2 of link 0's 4, and C the rest of 10.
TEST(Sharing, IsMaxMinFair) {
  Flows run({4, 10});
  run.sharing.start(run.sharing.addChannel(Uses{{0, 1}}), 2000, 1, 0);
  run.sharing.start(run.sharing.addChannel(Uses{{0, 1}, {1, 1}}), 2000, 2, 0);
  run.sharing.start(run.sharing.addChannel(Uses{{1, 1}}), 8000, 3, 0);
  EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{1, 1000}, {2, 1000}, {3, 1000}}));
}

TEST(Sharing, WhoComesLaterTakesFromThenOn) {
  Flows run({10});
  const std::uint32_t channel = run.sharing.addChannel(Uses{{0, 1}});
  run.sharing.start(channel, 1000, 1, 0);
  run.sharing.settle(0);
  run.sharing.start(channel, 1000, 2, timeOf(50));
  run.now = timeOf(50);
  EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{1, 150}, {2, 200}}));
}

// A sender's port that six messages leave by, into three ports that could take three times as much.
TEST(Sharing, TheFullestCounts) {
  Flows run({1, 1, 1, 1});
  for (const std::uint32_t in : {1u, 2u, 3u}) {
    const std::uint32_t channel = run.sharing.addChannel(Uses{{0, 1}, {in, 1}});
    run.sharing.start(channel, 1000, 10 * in, 0);
    run.sharing.start(channel, 1000, 10 * in + 1, 0);
  }
  for (const auto& [cookie, end] : run.ends()) EXPECT_NEAR(end, 6000, 1e-2) << cookie;
}

// A message over two rails of 4 and 2 needs two thirds of it on the first.
TEST(Sharing, WeightsAreParts) {
  Flows run({4, 2});
  run.sharing.start(run.sharing.addChannel(Uses{{0, 2.0 / 3}, {1, 1.0 / 3}}), 600, 1, 0);
  EXPECT_NEAR(run.ends().at(1), 100, 1e-3);
}

// What one rank sends another: one by one, beside what others send.
TEST(Sharing, AQueueGoesOneByOne) {
  Flows run({10});
  const std::uint32_t channel = run.sharing.addChannel(Uses{{0, 1}});
  run.sharing.startInQueue(channel, 5, 1000, 1, 0);
  run.sharing.startInQueue(channel, 5, 1000, 2, 0);
  run.sharing.startInQueue(channel, 6, 1500, 3, 0);
  EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{1, 200}, {2, 350}, {3, 300}}));
  EXPECT_EQ(run.sharing.carried(0), 3500);
}

TEST(Sharing, WhatSharesNothingIsLeftAlone) {
  Flows run({10, 10});
  run.sharing.start(run.sharing.addChannel(Uses{{0, 1}}), 1000, 1, 0);
  run.sharing.start(run.sharing.addChannel(Uses{{1, 1}}), 500, 2, 0);
  EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{1, 100}, {2, 50}}));
}

}  // namespace
}  // namespace weft::sim
