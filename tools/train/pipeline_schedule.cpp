// SPDX-License-Identifier: Apache-2.0
#include "tools/train/pipeline_schedule.h"

#include <algorithm>

namespace weft::train {
namespace {

std::vector<Turn> passes(Pass pass, const PipelineStage& stage, int64_t micros) {
  const int64_t together = microsTogether(stage), virtuals = stage.virtuals;
  std::vector<Turn> turns;
  for (int64_t first = 0; first < micros; first += together)
    for (int64_t v = 0; v < virtuals; ++v)
      for (int64_t i = 0; i < together; ++i)
        turns.push_back({pass, first + i, pass == Pass::kForward ? v : virtuals - 1 - v});
  return turns;
}

// Forwards before the first backward. With virtual stages a micro-batch must be through the other runs as well.
size_t ahead(const PipelineStage& stage, size_t passes) {
  const int64_t forEachAfter = stage.isEager || stage.virtuals > 1 ? 2 : 1;
  const int64_t ahead =
      forEachAfter * (stage.count - stage.index - 1) + (stage.virtuals - 1) * stage.count;
  return std::min(static_cast<size_t>(ahead), passes);
}

}  // namespace

std::vector<Turn> oneForwardOneBackward(const PipelineStage& stage, int64_t micros) {
  const std::vector<Turn> forward = forwards(stage, micros),
                          backward = passes(Pass::kBackward, stage, micros);
  const size_t first = ahead(stage, forward.size());
  std::vector<Turn> turns(forward.begin(), forward.begin() + static_cast<ptrdiff_t>(first));
  for (size_t i = 0; i < backward.size(); ++i) {
    if (i + first < forward.size()) turns.push_back(forward[i + first]);
    turns.push_back(backward[i]);
  }
  return turns;
}

std::vector<Turn> forwards(const PipelineStage& stage, int64_t micros) {
  return passes(Pass::kForward, stage, micros);
}

int64_t microsTogether(const PipelineStage& stage) { return stage.virtuals == 1 ? 1 : stage.count; }

double pipelineBubble(const PipelineStage& stage, int64_t micros) {
  return static_cast<double>(stage.count - 1) /
         static_cast<double>(stage.virtuals * micros + stage.count - 1);
}

}  // namespace weft::train
