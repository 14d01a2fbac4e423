// SPDX-License-Identifier: Apache-2.0
// What a model computes.
#pragma once

#include <cstdint>

#include "tools/train/model_shape.h"

namespace weft::train {

// Floating-point operations of forward and backward for one token of a sequence of `length`, as PaLM
// counts them (Chowdhery et al., arXiv 2204.02311, appendix B): 6 for each parameter, and 12 layers *
// hidden * length for attention, all of it although a mask or a window hides some. Megatron-LM's formula
// (Narayanan et al., arXiv 2104.04473, section 5.1) is the same but for parameters that no token is
// multiplied with, which are few. What a run computes twice does not count.
double flopsPerToken(const ModelShape& shape, int64_t length);

}  // namespace weft::train
