// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/look.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "perf/common/median.h"

namespace weft::accuracy {
namespace {

constexpr int kRounds = 3;

// From the earlier begin to the later end, of both of these ranks, of so many messages.
double messagesNs(const Comm& pair, std::uint32_t count) {
  std::uint64_t word = 0;
  std::vector<double> times;
  pair.barrier();
  times.push_back(nowNs());
  for (std::uint32_t i = 0; i < count; ++i)
    check(weftBroadcast(&word, &word, 1, weftUint64, 0, pair.get(), nullptr, nullptr), pair.get());
  times.push_back(nowNs());
  const std::vector<double> all = pair.gather(times);
  return std::max(all[1], all[3]) - std::min(all[0], all[2]);
}

}  // namespace

double nowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(now).count();
}

Look::Look(const Comm& all)
    : all_(all), rank_(all.rank()), pair_(all.split(all.rank() < 2 ? 0 : 1)) {}

State Look::take() {
  tune::Calibration calibration;
  for (int round = 0; rank_ == 0 && round < kRounds; ++round)
    calibration = tune::with(calibration, calibrator_.round(), 0);
  all_.barrier();
  State state{calibration.machine(), {}};
  state.entry = entry(state.machine.exchangeNs);
  return state;
}

// A message from one rank to another, as the engine sends it, is a broadcast among the two. The other
// ranks go to sleep meanwhile.
Entry Look::entry(double flagNs) const {
  constexpr std::uint32_t kMany = 2000, kBatches = 20, kAlone = 400;
  std::vector<double> many, alone;
  for (std::uint32_t i = 0; rank_ < 2 && i < kBatches; ++i)
    many.push_back(messagesNs(*pair_, kMany) / kMany);
  for (std::uint32_t i = 0; rank_ < 2 && i < kAlone; ++i) alone.push_back(messagesNs(*pair_, 1));
  all_.barrier();
  if (rank_ >= 2) return {};
  return {tools::median(many), std::max(0.0, tools::median(alone) - flagNs)};
}

}  // namespace weft::accuracy
