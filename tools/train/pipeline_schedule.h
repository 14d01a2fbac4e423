// SPDX-License-Identifier: Apache-2.0
// In which order a stage of a pipeline passes the micro-batches of a step forward and backward: one
// forward, one backward (PipeDream-Flush, arXiv 2006.09503; figure 4 of Megatron-LM, arXiv
// 2104.04473). A stage begins with as many forwards as keep the stages after it busy, goes on by turns,
// and ends with the backwards that are left. With one run of layers each, it keeps the activations of
// at most stages - stage micro-batches; then every stage has what it needs just in time, and waits for
// each message and whatever passes take longer than others. An eager one (eager 1F1B, arXiv
// 2211.05322) begins with twice as many forwards and keeps 2 (stages - stage) - 1, so that what it
// needs is there before. With v of them (virtual stages, section 2.2 of the paper) it takes as many
// micro-batches as there are stages through one run before it turns to the next, keeps more, and is
// always eager.
// Of m micro-batches on p stages that take equally long (p - 1) / (v m + p - 1) of the time is idle.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/train/model_part.h"
#include "tools/train/residency.h"

namespace weft::train {

struct Turn {
  Pass pass;
  int64_t micro;    // micro-batch, from 0
  int64_t own = 0;  // which of the stage's runs of layers, from 0

  bool operator==(const Turn&) const = default;
};

// Of each run, passes of each kind are in the order of micro-batches, on every stage. The first turn is
// forward, the last one backward. With virtual stages `micros` is a multiple of the stages.
std::vector<Turn> oneForwardOneBackward(const PipelineStage& stage, int64_t micros);

// The forwards alone, in the same order.
std::vector<Turn> forwards(const PipelineStage& stage, int64_t micros);

// How many micro-batches in succession go backward through all runs of a stage before others do.
int64_t microsTogether(const PipelineStage& stage);

// The share of a step in which equal stages are idle.
double pipelineBubble(const PipelineStage& stage, int64_t micros);

}  // namespace weft::train
