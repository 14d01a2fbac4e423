// SPDX-License-Identifier: Apache-2.0
#include "placement.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "perf/common/median.h"

namespace weft::peers {
namespace {

// Times as far, or as near. Of one placement they differ by up to 1.3, placements by a factor of two.
constexpr double kMoved = 1.4;
constexpr std::uint32_t kBatches = 6, kThrows = 200;
constexpr std::int64_t kPatienceNs = 20'000'000;

struct alignas(64) Ball {
  std::atomic<std::uint32_t> thrown{0};
};

// False if the other side does not throw in time: another process has its core.
bool await(const Ball& ball, std::uint32_t thrown, std::int64_t deadlineNs) {
  while (ball.thrown.load(std::memory_order_acquire) != thrown)
    if (nowNs() > deadlineNs) return false;
  return true;
}

bool pinTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

}  // namespace

double roundTripNs(const Page& page) {
  if (page.coreCount < 2) return 0;
  Ball there, back;
  const std::int64_t deadline = nowNs() + kPatienceNs;
  const std::jthread returning([&] {
    if (!pinTo(page.cores[1])) return;
    for (std::uint32_t i = 1; i <= kBatches * kThrows && await(there, i, deadline); ++i)
      back.thrown.store(i, std::memory_order_release);
  });
  double best = std::numeric_limits<double>::infinity();
  std::jthread throwing([&] {
    if (!pinTo(page.cores[0])) return;
    for (std::uint32_t batch = 0, i = 0; batch < kBatches; ++batch) {
      const std::int64_t start = nowNs();
      for (std::uint32_t k = 0; k < kThrows; ++k) {
        there.thrown.store(++i, std::memory_order_release);
        if (!await(back, i, deadline)) return;
      }
      best = std::min(best, static_cast<double>(nowNs() - start) / kThrows);
    }
  });
  throwing.join();
  return best < std::numeric_limits<double>::infinity() ? best : 0;
}

std::set<std::size_t> elsewhere(const std::map<std::size_t, Placement>& runs) {
  std::vector<double> ways;
  for (const auto& [number, run] : runs) {
    ways.push_back(run.beforeNs);
    ways.push_back(run.afterNs);
  }
  const double usual = tools::median(ways);
  const auto isUsual = [&](double ns) { return ns <= kMoved * usual && usual <= kMoved * ns; };
  std::set<std::size_t> moved;
  for (const auto& [number, run] : runs)
    if (!isUsual(run.beforeNs) || !isUsual(run.afterNs)) moved.insert(number);
  return moved;
}

}  // namespace weft::peers
