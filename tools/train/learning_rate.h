// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace weft::train {

// Of step 0, 1, ...: a linear warm-up to `peak`, then half a cosine to a tenth of it.
double learningRate(double peak, int64_t step, int64_t warmup, int64_t steps);

}  // namespace weft::train
