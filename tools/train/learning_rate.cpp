// SPDX-License-Identifier: Apache-2.0
#include "tools/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weft::train {
namespace {

// Of the peak, where so much of the decay is done.
double partLeft(Decay decay, double done) {
  switch (decay) {
    case Decay::kLinear:
      return 1 - done;
    case Decay::kPoly:
      return std::sqrt(1 - done);
    default:
      return 0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi * done));
  }
}

}  // namespace

double learningRate(const RateSchedule& schedule, int64_t step) {
  const auto& [peak, warmup, hold, steps, decay] = schedule;
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const int64_t from = warmup + hold;
  if (step < from) return peak;
  const double span = static_cast<double>(std::max<int64_t>(steps - 1 - from, 1));
  return peak * partLeft(decay, std::min(static_cast<double>(step - from) / span, 1.0));
}

}  // namespace weft::train
