// SPDX-License-Identifier: Apache-2.0
// Which part of a model a rank has: of its layers one or more runs, and of each of those a share.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/train/tensor_part.h"

namespace weft::train {

// One of the stages of a pipeline. The layers are cut into runs that follow each other, `virtuals` for each
// stage (Megatron's virtual stages), which are dealt out in turn: stage s of p has the runs s, s + p, ...
struct PipelineStage {
  int64_t index = 0, count = 1;
  int64_t virtuals = 1;
  std::vector<int64_t> blocks = {};  // of each run; empty: as the sizes of matrices say
  bool isEager = false;              // goes further ahead, see pipeline_schedule.h

  int64_t runs() const { return count * virtuals; }  // of the whole model
  // Which of them is this stage's own v-th.
  int64_t run(int64_t v) const { return v * count + index; }
  bool isFirst() const { return index == 0; }  // has the first run
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
    ModelPart part = *this;
    part.tensor.index = other % tensor.count;
    part.stage.index = other / tensor.count;
    return part;
  }
};

}  // namespace weft::train
