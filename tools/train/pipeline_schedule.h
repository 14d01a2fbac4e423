// SPDX-License-Identifier: Apache-2.0
// In which order a stage of a pipeline passes the micro-batches of a step forward and backward: one
// forward, one backward (PipeDream-Flush, arXiv 2006.09503; figure 4 of Megatron-LM, arXiv
// 2104.04473). A stage begins with as many forwards as there are stages after it, goes on by turns,
// and ends with the backwards that are left. So it keeps the activations of at most
// stages - stage micro-batches, and of m micro-batches on p stages that take equally long
// (p - 1) / (m + p - 1) of the time is idle.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/train/model_part.h"
#include "tools/train/residency.h"

namespace weft::train {

struct Turn {
  Pass pass;
  int64_t micro;  // micro-batch, from 0

  bool operator==(const Turn&) const = default;
};

// Passes of each kind are in the order of micro-batches, on every stage. The first turn is forward.
std::vector<Turn> oneForwardOneBackward(PipelineStage stage, int64_t micros);

// The share of a step in which equal stages are idle.
double pipelineBubble(int64_t stages, int64_t micros);

}  // namespace weft::train
