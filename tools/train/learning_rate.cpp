// SPDX-License-Identifier: Apache-2.0
#include "tools/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weft::train {

double learningRate(double peak, int64_t step, int64_t warmup, int64_t steps) {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const double span = static_cast<double>(std::max<int64_t>(steps - 1 - warmup, 1));
  const double done = static_cast<double>(step - warmup) / span;
  return peak * (0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi * std::min(done, 1.0))));
}

}  // namespace weft::train
