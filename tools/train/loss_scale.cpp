// SPDX-License-Identifier: Apache-2.0
#include "tools/train/loss_scale.h"

#include <algorithm>

namespace weft::train {

void LossScale::resume(const State& state) {
  const double own = state_.scale;
  state_ = state;
  if (!window_) state_.scale = own;
}

void LossScale::stepped() {
  ++state_.goodSteps;
  if (!window_ || state_.goodSteps < *window_) return;
  state_.scale = std::min(2 * state_.scale, kMost);
  state_.goodSteps = 0;
}

bool LossScale::overflowed() {
  ++state_.skippedSteps;
  state_.goodSteps = 0;
  if (!window_) return true;
  if (state_.scale <= kLeast) return false;
  state_.scale = std::max(state_.scale / 2, kLeast);
  return true;
}

}  // namespace weft::train
