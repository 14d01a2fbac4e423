// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace weft::train {

// How the learning rate falls to the last step: half a cosine to a tenth of the peak, a line to 0,
// or the square root of that line (poly of power 0.5, as BERT's LAMB recipe has it).
enum class Decay { kCosine, kLinear, kPoly };

// A linear warm-up to `peak`, `hold` steps of it, then the decay.
struct RateSchedule {
  double peak = 0;
  int64_t warmup = 0, hold = 0, steps = 1;
  Decay decay = Decay::kCosine;
};

// Of step 0, 1, ...
double learningRate(const RateSchedule& schedule, int64_t step);

}  // namespace weft::train
