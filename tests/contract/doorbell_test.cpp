// SPDX-License-Identifier: Apache-2.0
// Nobody sleeps through an arrival.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "courier.h"
#include "transports/doorbell.h"

namespace weft::transport {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kMost{10};  // whoever sleeps for so long was not woken

class Doorbell : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Doorbell, testing::ValuesIn(bareFabrics()),
                         [](const auto& of) { return of.param.name; });

// Sleeps until `arrived`, after looking at it `spins` times.
template <class Arrived>
void sleepUntil(ControlPage& mine, std::uint64_t spins, Arrived&& arrived) {
  for (std::uint64_t i = 0; i < spins; ++i)
    if (arrived()) return;
  const Clock::time_point begin = Clock::now();
  while (!arrived()) {
    doorbellWait(mine, kMost, arrived);
    REQUIRE(Clock::now() - begin < kMost / 2, "a wake-up was lost");
  }
}

// Two ranks pass a flag to and fro. Short random spins before each sleep bring the put close to the
// moment of falling asleep.
void passToAndFro(Rank& rank, Transport& transport, std::uint64_t rounds) {
  const std::uint32_t peer = 1 - rank.rank;
  const ArrivalSlot& arrival = transport.own().arrivals()[0];
  ControlPage& mine = transport.own().control();
  std::mt19937 random(rank.rank);
  for (std::uint64_t flag = 1; flag <= rounds; ++flag) {
    const Put put{.peer = peer, .arrival = transport.layout().arrivals(), .flag = flag};
    if (rank.rank == 0) REQUIRE(transport.put(put) == PutResult::Done);
    sleepUntil(mine, random() % 2000,
               [&] { return arrival.flag.load(std::memory_order_acquire) == flag; });
    if (rank.rank == 1) REQUIRE(transport.put(put) == PutResult::Done);
  }
}

TEST_P(Doorbell, PutWakesSleeper) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(2));
    passToAndFro(rank, *transport, kTsan ? 2000 : 20000);
    rank.barrier();
  });
}

// The same where membarrier is missing, so that putters must fence.
TEST_P(Doorbell, PutWakesSleeperWithFences) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(2));
    transport->own().control().ringFence.store(1);
    rank.barrier();
    passToAndFro(rank, *transport, kTsan ? 2000 : 20000);
    rank.barrier();
  });
}

TEST_P(Doorbell, WakeWithoutPut) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(2));
    ControlPage& zero = *transport->control(0);
    if (rank.rank == 0) {
      sleepUntil(zero, 0, [&] { return zero.callSeq.load(std::memory_order_acquire) == 1; });
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      zero.callSeq.store(1, std::memory_order_release);
      transport->wake(0);
    }
    rank.barrier();
  });
}

TEST(DoorbellPage, EndsAfterTheMostAndWhenReady) {
  ControlPage page;
  const Clock::time_point begin = Clock::now();
  doorbellWait(page, std::chrono::milliseconds(30), [] { return false; });
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(29));
  doorbellWait(page, std::chrono::hours(1), [] { return true; });
  doorbellWait(page, std::chrono::nanoseconds(-1), [] { return false; });
  EXPECT_EQ(page.sleeping.load(), 0u);
}

// Many ringers, one sleeper: one counter each, and the sleeper must see each step of each.
TEST(DoorbellPage, ManyRingersLoseNothing) {
  constexpr unsigned kRingers = 3;
  constexpr std::uint64_t kSteps = kTsan ? 1000 : 20000;
  struct alignas(kLine) Line {
    std::atomic<std::uint64_t> sent{0};
    std::atomic<std::uint64_t> seen{0};
  };
  ControlPage page;
  if (hasHeavyFences()) relieveRingers(page);
  Line lines[kRingers];
  std::vector<std::thread> ringers;
  for (Line& line : lines)
    ringers.emplace_back([&] {
      for (std::uint64_t step = 1; step <= kSteps; ++step) {
        while (line.seen.load(std::memory_order_acquire) != step - 1) std::this_thread::yield();
        line.sent.store(step, std::memory_order_release);
        doorbellRing(page);
      }
    });
  const auto news = [&] {
    for (Line& line : lines)
      if (line.sent.load(std::memory_order_acquire) != line.seen.load(std::memory_order_relaxed))
        return true;
    return false;
  };
  for (std::uint64_t seen = 0; seen < kRingers * kSteps;) {
    const Clock::time_point begin = Clock::now();
    while (!news()) doorbellWait(page, kMost, news);
    EXPECT_LT(Clock::now() - begin, kMost / 2) << "a wake-up was lost";
    for (Line& line : lines) {
      const std::uint64_t sent = line.sent.load(std::memory_order_acquire);
      seen += sent - line.seen.load(std::memory_order_relaxed);
      line.seen.store(sent, std::memory_order_release);
    }
  }
  for (std::thread& ringer : ringers) ringer.join();
}

// One store that several wait for, as at the end of an invocation. False: a wake-up was lost.
bool storeForAll(bool fences) {
  constexpr std::uint64_t kSteps = kTsan ? 500 : 5000;
  struct alignas(kLine) Sleeper {
    ControlPage page;
    std::atomic<std::uint64_t> seen{0};
  };
  std::array<Sleeper, 2> sleepers;
  std::atomic<std::uint64_t> completed{0};
  std::atomic<bool> lost{false};
  const bool barriers = !fences && hasHeavyFences();
  const auto sleepThroughNone = [&](Sleeper& me, unsigned seed) {
    std::mt19937 random(seed);
    for (std::uint64_t step = 1; step <= kSteps && !lost; ++step) {
      const auto came = [&] { return completed.load(std::memory_order_acquire) == step; };
      for (std::uint64_t spins = random() % 2000; spins > 0 && !came(); --spins) continue;
      const Clock::time_point begin = Clock::now();
      while (!came() && !lost) doorbellWait(me.page, kMost, came);
      if (Clock::now() - begin > kMost / 2) lost = true;
      me.seen.store(step, std::memory_order_release);
    }
  };
  std::vector<std::thread> threads;
  for (Sleeper& sleeper : sleepers) {
    if (barriers) relieveRingers(sleeper.page);
    threads.emplace_back(sleepThroughNone, std::ref(sleeper), threads.size());
  }
  for (std::uint64_t step = 1; step <= kSteps && !lost; ++step) {
    completed.store(step, std::memory_order_release);
    Sleepers asleep;
    for (Sleeper& sleeper : sleepers)
      if (asleep.include(sleeper.page)) doorbellRing(sleeper.page);
    for (const Sleeper& sleeper : sleepers)
      while (sleeper.seen.load(std::memory_order_acquire) != step && !lost)
        std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  return !lost;
}

TEST(DoorbellPage, OneStoreWakesAllWhoWaitForIt) {
  EXPECT_TRUE(storeForAll(false));
  EXPECT_TRUE(storeForAll(true)) << "where putters must fence";
}

}  // namespace
}  // namespace weft::transport
