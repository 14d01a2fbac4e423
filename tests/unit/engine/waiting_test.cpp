// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "engine/turns.h"
#include "engine/waiter.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;

bool nobodyHere(const Seat&) { return false; }
bool somebodyHere(const Seat&) { return true; }

WaitTuning shortWaits() {
  WaitTuning tuning;
  tuning.eager = 2;
  tuning.spins = 10;
  tuning.respins = 0;
  tuning.yieldFor = 3ms;
  tuning.sleepMax = 4ms;
  return tuning;
}

TEST(Waiter, SpinsThenYieldsThenSleeps) {
  const WaitTuning tuning = shortWaits();
  transport::ControlPage page;
  Waiter waiter(tuning, page, true);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(waiter.pause(nobodyHere), Waiter::Advice::Poll);
  int checks = 0;
  Waiter::Advice advice;
  while ((advice = waiter.pause(nobodyHere)) != Waiter::Advice::Sleep)
    checks += advice == Waiter::Advice::Check;
  EXPECT_LE(checks, 3);
  EXPECT_EQ(waiter.sleepTime(), 1ms);
  EXPECT_EQ(waiter.sleepTime(), 2ms);
  EXPECT_EQ(waiter.sleepTime(), 4ms);
  EXPECT_EQ(waiter.sleepTime(), 4ms) << "bounded";
  waiter.progressed();
  EXPECT_EQ(waiter.pause(nobodyHere), Waiter::Advice::Poll) << "a new wait begins with spinning";
}

// And sleeps no longer than what is done meanwhile may be put off.
TEST(Waiter, DoesSomethingElseMeanwhile) {
  int done = 0;
  WaitTuning tuning = shortWaits();
  tuning.meanwhile = {[](void* its) { ++*static_cast<int*>(its); }, &done};
  transport::ControlPage page;
  Waiter waiter(tuning, page, true);
  for (int i = 0; i < 10; ++i) waiter.pause(nobodyHere);
  EXPECT_EQ(done, 0) << "not while it spins";
  int times = 0;
  while (waiter.pause(nobodyHere) != Waiter::Advice::Sleep) ++times;
  EXPECT_EQ(done, times + 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(waiter.sleepTime(), 200us);
}

TEST(Waiter, ChecksButNeverSleepsWhereTheTransportMustBePolled) {
  const WaitTuning tuning = shortWaits();
  transport::ControlPage page;
  Waiter waiter(tuning, page, false);
  int checks = 0;
  for (const auto start = std::chrono::steady_clock::now();
       std::chrono::steady_clock::now() - start < 20ms;) {
    const Waiter::Advice advice = waiter.pause(nobodyHere);
    ASSERT_NE(advice, Waiter::Advice::Sleep);
    checks += advice == Waiter::Advice::Check;
  }
  EXPECT_GE(checks, 1);
}

TEST(Waiter, DoesNotSpinForARankOnItsOwnCore) {
  WaitTuning tuning = shortWaits();
  tuning.yieldFor = 0us;
  transport::ControlPage page;
  Waiter waiter(tuning, page, true);
  for (std::uint32_t i = 0; i < tuning.eager; ++i)
    EXPECT_EQ(waiter.pause(somebodyHere), Waiter::Advice::Poll);
  EXPECT_EQ(waiter.pause(somebodyHere), Waiter::Advice::Sleep) << "after a yield";
  EXPECT_NE(page.core.load(), 0u) << "told to the peers";
}

TEST(Seat, KnowsWhoIsOnTheSameCore) {
  transport::ControlPage mine, theirs;
  Seat seat(mine);
  seat.take();
  EXPECT_FALSE(seat.isShared(nullptr)) << "of another host";
  EXPECT_FALSE(seat.isShared(&theirs)) << "never waited";
  theirs.core = mine.core.load();
  EXPECT_TRUE(seat.isShared(&theirs));
  theirs.core = mine.core + 1;
  EXPECT_FALSE(seat.isShared(&theirs));
}

TEST(Waiter, MoreRanksThanCoresHardlySpin) {
  EXPECT_GT(tuneWaiting(2, 2, -1).spins, 100u);
  EXPECT_LE(tuneWaiting(4, 2, -1).spins, 20u);
  EXPECT_LE(tuneWaiting(8, 2, -1).spins, 10u);
  EXPECT_EQ(tuneWaiting(8, 2, 5).spins, 100u) << "the knob decides";
}

TEST(Turns, RunInTheOrderOfIssue) {
  Turns turns;
  constexpr int kCalls = 200;
  std::vector<std::uint64_t> tickets;
  for (int i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(turns.beginIssue());
    EXPECT_FALSE(turns.beginIssue()) << "one at a time";
    tickets.push_back(turns.take());
    turns.endIssue();
  }
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int t = 3; t >= 0; --t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < kCalls; i += 4) {
        ASSERT_TRUE(turns.await(tickets[static_cast<std::size_t>(i)], Deadline::in(20000)));
        order.push_back(i);  // in turn, so alone
        turns.done(tickets[static_cast<std::size_t>(i)]);
      }
    });
  }
  EXPECT_TRUE(turns.awaitAll(Deadline::in(20000)));
  for (std::thread& t : threads) t.join();
  ASSERT_EQ(order.size(), static_cast<std::size_t>(kCalls));
  for (int i = 0; i < kCalls; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_TRUE(turns.allDone());
}

TEST(Turns, WaitHasADeadline) {
  Turns turns;
  ASSERT_TRUE(turns.beginIssue());
  turns.take();
  const std::uint64_t second = turns.take();
  turns.endIssue();
  EXPECT_FALSE(turns.await(second, Deadline::in(20)));
}

}  // namespace
}  // namespace weft::engine
