// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/life.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "perf/common/exit_code.h"

namespace weft::perf {
namespace {

// A launcher kills the others when one has ended with an error, and with them what they would say.
TEST(Life, NoRankEndsBeforeRankZeroHasSpoken) {
  std::vector<Communicator> comms = Communicator::all(2);
  Outcome outcome("life_test");
  std::atomic<bool> spoken = false, heard = false;
  const auto live = [&](std::size_t rank, const std::function<int(Team&)>& work) {
    liveAsRank(
        outcome, nullptr, [&] { return std::make_unique<Team>(std::move(comms[rank])); }, work);
  };
  std::thread other([&] {
    live(1, [](Team&) { return tools::kExitBad; });
    heard = spoken.load();
  });
  live(0, [&](Team&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    spoken = true;
    return tools::kExitBad;
  });
  other.join();
  EXPECT_TRUE(heard);
  EXPECT_EQ(outcome.exitCode(), tools::kExitBad);
}

}  // namespace
}  // namespace weft::perf
