// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tools/checks/mapped_memory.h"
#include "tools/checks/memory.h"

namespace weft::checks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostEach = 64 << 20;                // bytes a thread: more than its caches hold
constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes of a copy: short beside a time slice

// Copies pieces of one half of its memory to the other; the median of their rates, so that a thread
// that has to share its core finds no other rate, only fewer.
double rateOfThread(double seconds, std::size_t bytes) {
  constexpr std::size_t kWords = kPiece / sizeof(std::uint64_t);
  const MappedMemory memory(bytes);
  const auto words = memory.words();
  const std::size_t half = words.size() / 2 / kWords * kWords;
  if (!words.empty()) std::memset(words.data(), 1, words.size_bytes());
  if (half == 0) return 0;
  std::vector<double> rates;
  const auto begin = Clock::now();
  for (auto at = begin; rates.empty() || at - begin < std::chrono::duration<double>(seconds);) {
    const std::size_t from = rates.size() * kWords % half;
    std::memcpy(&words[half + from], &words[from], kPiece);
    const auto after = Clock::now();
    rates.push_back(2 * kPiece / std::chrono::duration<double>(after - at).count());
    at = after;
  }
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::ranges::nth_element(rates, middle);
  return *middle;
}

}  // namespace

void checkMemorySpeed(double seconds, unsigned threads, double mostBytes, HostReport& report) {
  const auto each = static_cast<std::size_t>(std::min(kMostEach, mostBytes / threads));
  std::vector<double> rates(threads);
  {
    std::vector<std::jthread> running;
    for (double& rate : rates) running.emplace_back([&] { rate = rateOfThread(seconds, each); });
  }
  double sum = 0;
  for (const double rate : rates) sum += rate;
  report.add("memory.bandwidth", sum / 1e9, "GB/s");
}

}  // namespace weft::checks
