// SPDX-License-Identifier: Apache-2.0
// Nobody sleeps through what a wire brings, whenever it comes.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "station.h"

namespace weft::wire {
namespace {

class Sleep : public testing::TestWithParam<WireCase> {};
INSTANTIATE_TEST_SUITE_P(Wires, Sleep, testing::ValuesIn(wiresUnderTest()),
                         testing::PrintToStringParamName());

constexpr int kMostMs = 20000;  // who sleeps for so long was not woken
constexpr int kRetryMs = 2;     // what the wire itself tries again

// Polls once before each sleep, so that most of what comes finds the rank between the two.
void sleepUntil(Station& me, const std::function<bool()>& what) {
  std::vector<pollfd> descriptors;
  for (me.poll(); !what(); me.poll()) {
    descriptors.clear();
    if (!me.wire().arm(&descriptors, true)) continue;
    const bool retries = me.wire().isUnsettled();
    const int ready = ::poll(descriptors.data(), descriptors.size(), retries ? kRetryMs : kMostMs);
    REQUIRE(ready > 0 || retries, "rank ", me.self(), " slept through what it waits for; ",
            me.heard(), " completions came, ", me.unanswered(), " writes are open");
  }
}

// From nothing at all to longer than it takes to fall asleep.
void spin(std::mt19937& random) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::microseconds(random() % 64 * (random() % 8));
  while (Clock::now() < until) {
  }
}

// Each waits for the other in turn; the short ones and what takes a connection several steps.
TEST_P(Sleep, WhateverComesWakes) {
  runStations(GetParam(), 2, [](Station& me) {
    if (!me.wire().caps().sleeps) return me.meet();
    std::mt19937 random(me.self());
    const std::size_t most = std::min(me.wire().caps().maxWrite, me.sources().size());
    constexpr std::uint32_t kRounds = 300;
    const std::uint32_t peer = 1 - me.self();
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const std::size_t bytes = round % 16 == 15 ? most : round % 3 * 40;
      if (round % 2 == me.self()) {
        spin(random);
        me.send({.peer = peer, .src = me.sources().data(), .bytes = bytes, .immediate = round});
        if (random() % 2 == 0) sleepUntil(me, [&] { return me.unanswered() == 0; });
      } else {
        sleepUntil(me, [&] { return me.heard() != 0; });
        REQUIRE(me.completions.size() == 1 && me.completions[0].second == round);
        me.completions.clear();
      }
    }
    me.meet();
  });
}

// More than goes at once: who sends sleeps until there is room.
TEST_P(Sleep, RoomForMoreWakes) {
  runStations(GetParam(), 2, [](Station& me) {
    if (!me.wire().caps().sleeps) return me.meet();
    constexpr std::size_t kWrites = 200;
    const std::size_t bytes = std::min<std::size_t>(me.wire().caps().maxWrite, 65536);
    if (me.self() == 0) {
      for (std::size_t i = 0; i < kWrites; ++i)
        me.send({.peer = 1, .src = me.sources().data(), .bytes = bytes, .immediate = 7});
      sleepUntil(me, [&] { return me.unanswered() == 0; });
    } else {
      sleepUntil(me, [&] { return me.heard() == kWrites; });
    }
    me.meet();
  });
}

}  // namespace
}  // namespace weft::wire
