// SPDX-License-Identifier: Apache-2.0
// Rotary positions on tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "tools/train/model_shape.h"

namespace weft::train {

// Which rows turn together: (i, i + half of those that turn), or (2i, 2i + 1).
enum class Pairs { kHalves, kNeighbours };

// Turns the rows of queries or keys, [batch, heads, length, headWidth], by their positions.
class Rotation {
 public:
  Rotation(int64_t length, int64_t headWidth, Rotary form, Pairs pairs = Pairs::kHalves);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  Pairs pairs_;
  int64_t turned_;            // rows of a head that take part
  at::Tensor cosine_, sine_;  // [length, turned_ / 2]
};

}  // namespace weft::train
