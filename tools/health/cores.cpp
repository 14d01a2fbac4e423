// SPDX-License-Identifier: Apache-2.0
#include "tools/health/cores.h"
#include "perf/common/median.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

namespace weft::health {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kStarved = 0.7;  // of what the others get

double threadSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Computes until then; what part of a core that was.
double shareUntil(Clock::time_point end) {
  const auto start = Clock::now();
  const double before = threadSeconds();
  while (Clock::now() < end) continue;
  const double wall = std::chrono::duration<double>(Clock::now() - start).count();
  return (threadSeconds() - before) / wall;
}

std::string coresText() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::string text;
  const auto has = [&](std::size_t core) { return core < CPU_SETSIZE && CPU_ISSET(core, &set); };
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (!has(i)) continue;
    const std::size_t first = i;
    while (has(i + 1)) ++i;
    text += text.empty() ? "" : ",";
    text += i > first ? fmt::format("{}-{}", first, i) : fmt::format("{}", first);
  }
  return text;
}

}  // namespace

std::vector<CoreShare> measureShares(Crew& crew, double seconds, int turns) {
  const auto slot =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const int slots = 1 + std::ranges::max(crew.members(), {}, &Member::localIndex).localIndex;
  std::vector<double> shares;
  for (int turn = 0; turn < turns; ++turn) {
    crew.barrier();
    const auto start = Clock::now() + crew.me().localIndex * slot;
    std::this_thread::sleep_until(start);
    shares.push_back(shareUntil(start + slot));
    std::this_thread::sleep_for((slots - 1 - crew.me().localIndex) * slot);
  }
  std::vector<CoreShare> all;
  for (const auto& share :
       crew.gather(std::vector<double>{tools::median(shares), std::ranges::max(shares)}))
    all.push_back({share[0], share[1], {}});
  const auto cores = crew.gather(coresText());
  for (std::size_t i = 0; i < all.size(); ++i) all[i].cores = cores[i];
  return all;
}

std::vector<int> starved(const std::vector<Member>& members, const std::vector<CoreShare>& shares) {
  // The best that ranks with the same cores of the same host got.
  std::map<std::pair<int, std::string>, double> best;
  for (std::size_t i = 0; i < members.size(); ++i) {
    double& most = best[{members[i].hostIndex, shares[i].cores}];
    most = std::max(most, shares[i].best);
  }
  std::vector<int> ranks;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::pair mine{members[i].hostIndex, shares[i].cores};
    std::vector<double> others;
    for (const auto& [cores, share] : best)
      if (cores.first == mine.first && cores != mine) others.push_back(share);
    if (!others.empty() && best[mine] < kStarved * tools::median(others))
      ranks.push_back(static_cast<int>(i));
  }
  return ranks;
}

}  // namespace weft::health
