// SPDX-License-Identifier: Apache-2.0
#include "tools/train/pipeline_schedule.h"

#include <algorithm>

namespace weft::train {

std::vector<Turn> oneForwardOneBackward(PipelineStage stage, int64_t micros) {
  const int64_t ahead = std::min(stage.count - stage.index - 1, micros);
  std::vector<Turn> turns;
  for (int64_t micro = 0; micro < ahead; ++micro) turns.push_back({Pass::kForward, micro});
  for (int64_t micro = 0; micro < micros; ++micro) {
    if (micro + ahead < micros) turns.push_back({Pass::kForward, micro + ahead});
    turns.push_back({Pass::kBackward, micro});
  }
  return turns;
}

double pipelineBubble(int64_t stages, int64_t micros) {
  return static_cast<double>(stages - 1) / static_cast<double>(micros + stages - 1);
}

}  // namespace weft::train
