// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/step/page_costs.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "base/now.h"
#include "perf/common/median.h"
#include "shard/memory.h"

namespace weft::simulator {
namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20;
constexpr int kRounds = 5;

double nsOf(const std::function<void()>& what) {
  const double from = nowNs();
  what();
  return nowNs() - from;
}

double medianPerByte(const std::vector<double>& ns) {
  return std::max(tools::median(ns), 0.0) / kBytes;
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
