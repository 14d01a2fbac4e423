// SPDX-License-Identifier: Apache-2.0
#include "sim/ways.h"

#include <gtest/gtest.h>

#include <set>

#include "fabric_job.h"

namespace weft::sim {
namespace {

// Of each node, ranks 0 and 1 are on one rail, and 2 and 3 on the other; 2 has no cable to 3.
constexpr const char* kTwoRails =
    "nodes 40 ranks 4\nmesh 0-1 gbit 80 us 3\nmesh 1-2 gbit 80 us 3\nmesh 0-2 gbit 80 us 3\n"
    "rail a gbit 40 us 20 ranks 0-1\nrail b gbit 40 us 30 ranks 2-3\n";

struct Fixture : testing::Test {
  Network network = networkOf(kTwoRails);
  Symmetry symmetry = Symmetry::none(network);
  Sharing sharing{[this] {
    std::vector<double> rates;
    for (std::uint32_t r = 0; r < network.resources(); ++r) rates.push_back(network.rateOf(r));
    return rates;
  }()};
  Ways ways{network, symmetry, sharing};

  std::uint32_t startBetween(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t channel = ways.channelBetween(from, to);
    sharing.startInQueue(channel, std::uint64_t{from} << 32 | to, 1000, cookie_++, 0);
    return channel;
  }
  // All that is on its way comes to its end.
  void finish() {
    sharing.settle(0);
    while (sharing.nextEnd() != kNever) {
      const Time now = sharing.nextEnd();
      sharing.finish(now);
      sharing.settle(now);
    }
  }

 private:
  std::uint64_t cookie_ = 0;
};
using WaysTest = Fixture;

TEST_F(WaysTest, MessagesOverTheSameRailsAreInOneChannel) {
  const std::uint32_t one = startBetween(0, 6);
  EXPECT_EQ(startBetween(1, 7), one);
  EXPECT_NE(startBetween(2, 6), one);
  EXPECT_NE(startBetween(0, 5), one);
  EXPECT_NE(startBetween(4, 2), one);
}

TEST_F(WaysTest, ACableIsAChannelForGood) {
  const std::uint32_t there = startBetween(0, 1), back = startBetween(1, 0);
  EXPECT_NE(there, back);
  finish();
  ways.left(there);
  EXPECT_EQ(startBetween(0, 1), there);
  EXPECT_EQ(ways.latencyBetween(0, 1), timeOf(3000));
}

TEST_F(WaysTest, TheLatencyIsThatOfTheSlowerRail) {
  EXPECT_EQ(ways.latencyBetween(0, 5), timeOf(20000));
  EXPECT_EQ(ways.latencyBetween(0, 6), timeOf(30000));
  EXPECT_EQ(ways.latencyBetween(2, 3), timeOf(30000));
}

TEST_F(WaysTest, AChannelWithSomethingOnItsWayStays) {
  const std::uint32_t one = startBetween(0, 6);
  startBetween(1, 7);
  ways.left(one);
  EXPECT_EQ(startBetween(0, 7), one);
  EXPECT_NE(startBetween(8, 14), one);
}

// As many as are in use at a time, not as there are pairs.
TEST_F(WaysTest, AnEmptyChannelServesOthers) {
  std::set<std::uint32_t> channels;
  for (std::uint32_t to = 4; to < network.ranks(); ++to) {
    const std::uint32_t one = startBetween(0, to), two = startBetween(2, to);
    EXPECT_NE(one, two);
    finish();
    for (const std::uint32_t channel : {one, two, one}) ways.left(channel);
    channels.insert({one, two});
  }
  EXPECT_EQ(channels.size(), 2u);
  const std::uint32_t r = network.memoryOf(0) - 1;  // the last rail of node 0, inwards
  EXPECT_EQ(sharing.carried(r), 0);
  EXPECT_EQ(sharing.carried(r - 1), 1000.0 * (network.ranks() - 4));
}

}  // namespace
}  // namespace weft::sim
