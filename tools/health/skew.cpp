// SPDX-License-Identifier: Apache-2.0
#include "tools/health/skew.h"
#include "perf/common/median.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace weft::health {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostRendezvous = 200;
constexpr int kWork = 100'000;  // additions, about 0.1 ms

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void work() {
  volatile std::uint32_t sum = 0;
  for (int i = 0; i < kWork; ++i) sum = sum + static_cast<std::uint32_t>(i);
}

// How long this rank waited in each meeting.
std::vector<double> meet(Crew& crew, int meetings) {
  std::vector<double> waits;
  for (int i = 0; i < meetings; ++i) {
    work();
    const auto start = Clock::now();
    crew.barrier();
    waits.push_back(since(start) * 1e6);
  }
  return waits;
}

}  // namespace

Skew measureSkew(Crew& crew, double seconds) {
  const auto start = Clock::now();
  meet(crew, 5);
  const double fitting = std::clamp(seconds * 5 / since(start), 10.0, double{kMostRendezvous});
  const int meetings = std::stoi(crew.hear(std::to_string(static_cast<int>(fitting))));
  const auto waits = crew.gather(meet(crew, meetings));

  const std::size_t ranks = waits.size();
  std::vector<std::vector<double>> late(ranks);
  Skew skew{.lateMicroseconds = {}, .lastShare = std::vector<double>(ranks)};
  for (std::size_t i = 0; i < waits[0].size(); ++i) {
    const auto waited = [&](const std::vector<double>& rank) { return rank[i]; };
    const auto last = std::ranges::min_element(waits, {}, waited);
    const double longest = std::ranges::max(waits, {}, waited)[i];
    skew.lastShare[static_cast<std::size_t>(last - waits.begin())] += 1.0 / meetings;
    for (std::size_t rank = 0; rank < ranks; ++rank) late[rank].push_back(longest - waits[rank][i]);
  }
  for (const auto& one : late) skew.lateMicroseconds.push_back(tools::median(one));
  return skew;
}

}  // namespace weft::health
