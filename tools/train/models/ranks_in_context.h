// SPDX-License-Identifier: Apache-2.0
// The ranks that backward will call, in what libtorch keeps for it.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "tools/train/models/tensor_ranks.h"

namespace weft::train {

inline void keep(torch::autograd::AutogradContext& context, TensorRanks* ranks) {
  context.saved_data["ranks"] = reinterpret_cast<int64_t>(ranks);
}

inline TensorRanks& ranksOf(torch::autograd::AutogradContext& context) {
  return *reinterpret_cast<TensorRanks*>(context.saved_data.at("ranks").toInt());
}

}  // namespace weft::train
