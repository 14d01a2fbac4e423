// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing (Chen et al., "Training deep nets with sublinear memory cost", arXiv 1604.06174).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "tools/train/offload_file.h"

namespace weft::train {

// compute(x), of which nothing is kept but x: backward computes it once more, as forward did, and goes back through that. So
// the gradients are the same bits. `compute` is a pure function of x and of parameters, and owns what else it needs. With
// a file, x is there until then.
at::Tensor recomputed(const at::Tensor& x, std::function<at::Tensor(const at::Tensor&)> compute,
                      const std::shared_ptr<OffloadFile>& file = nullptr);

}  // namespace weft::train
