// SPDX-License-Identifier: Apache-2.0
// Who hands progress over and sleeps on its doorbell is woken by whatever comes.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "courier.h"
#include "transports/doorbell.h"

namespace weft::transport {
namespace {

class Asleep : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Asleep, testing::ValuesIn(allFabrics()),
                         [](const auto& of) { return of.param.name; });

constexpr std::uint32_t kSleepers = 4;
constexpr std::chrono::seconds kSleepMost{20};  // who sleeps for so long was not woken

// As the engine does.
void sleepUntil(Transport& transport, Courier& courier, const std::function<bool()>& what) {
  ControlPage& mine = transport.own().control();
  const bool polls = transport.caps().polls;
  for (courier.pump(); !what(); courier.pump()) {
    if (polls && !transport.handOver()) continue;
    const auto before = std::chrono::steady_clock::now();
    doorbellWait(mine, kSleepMost, [&] { return (polls && transport.hasNews()) || what(); });
    if (polls) transport.acquireProgress();
    REQUIRE(std::chrono::steady_clock::now() - before < kSleepMost,
            "slept through what it waits for");
  }
}

// A word goes round all ranks, inside hosts and between them; each sleeps until it has come.
TEST_P(Asleep, ArrivalsWake) {
  runAllWell(GetParam(), kSleepers, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(kSleepers));
    const WindowLayout& layout = transport->layout();
    Courier courier(*transport);
    std::mt19937 random(rank.rank);
    constexpr std::uint64_t kTurns = 60;
    const std::uint32_t next = (rank.rank + 1) % kSleepers;
    auto& arrival =
        *reinterpret_cast<ArrivalSlot*>(transport->own().base() + arrivalOffset(layout, 0, 0));
    for (std::uint64_t round = 1; round <= kTurns; ++round) {
      const Put put{.peer = next,
                    .arrival = arrivalOffset(layout, 0, 0),
                    .flag = arrivalFlag(round, 0),
                    .target = kInlined};
      if (rank.rank == 0) {
        if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
        REQUIRE(courier.send(put));
      }
      sleepUntil(*transport, courier, [&] { return arrival.flag.load() >= arrivalFlag(round, 0); });
      if (rank.rank != 0) REQUIRE(courier.send(put));
    }
    courier.drain();
    rank.barrier();
  });
}

}  // namespace
}  // namespace weft::transport
