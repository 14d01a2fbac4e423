// SPDX-License-Identifier: Apache-2.0
// Which part of a model a rank has: of its layers a run, and of each of those a share.
#pragma once

#include <cstdint>

#include "tools/train/tensor_part.h"

namespace weft::train {

// A run of layers, of so many.
struct PipelineStage {
  int64_t index = 0, count = 1;

  bool isFirst() const { return index == 0; }
  bool isLast() const { return index + 1 == count; }
};

struct ModelPart {
  TensorPart tensor;
  PipelineStage stage;

  // Of all parts, those of a stage follow each other.
  int64_t count() const { return stage.count * tensor.count; }
  int64_t index() const { return stage.index * tensor.count + tensor.index; }
  // Another one of as many.
  ModelPart at(int64_t other) const {
    return {{other % tensor.count, tensor.count}, {other / tensor.count, stage.count}};
  }
};

}  // namespace weft::train
