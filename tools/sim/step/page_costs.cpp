// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/step/page_costs.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "shard/memory.h"

namespace weft::simulator {
namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20;
constexpr int kRounds = 5;

double nsOf(const std::function<void()>& what) {
  const auto from = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - from).count();
}

double medianPerByte(std::vector<double> ns) {
  std::ranges::nth_element(ns, ns.begin() + kRounds / 2);
  return std::max(ns[kRounds / 2], 0.0) / kBytes;
}

}  // namespace

PageCosts measurePages() {
  shard::ShardMemory memory;
  if (!shard::ShardMemory::make(shard::ShardMemory::Kind::Shared, kBytes, "a trial", &memory).ok())
    return {};
  const auto write = [&] { std::memset(memory.data(), 1, kBytes); };
  std::vector<double> giveBack, touch;
  for (int round = 0; round < kRounds; ++round) {
    const double fresh = nsOf(write), again = nsOf(write);
    touch.push_back(fresh - again);
    giveBack.push_back(nsOf([&] { memory.drop(0, kBytes); }));
  }
  return {medianPerByte(giveBack), medianPerByte(touch)};
}

}  // namespace weft::simulator
