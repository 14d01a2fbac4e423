// SPDX-License-Identifier: Apache-2.0
// What a step of a pipeline takes if its passes take so long: the turns of all stages one after the other, by a clock
// of each, with messages that take no time. So what the order of turns costs is told apart from what unequal
// passes cost, and both from what only a run shows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tools/train/pipeline_schedule.h"

namespace weft::train {

// Seconds that a stage is busy in one of its turns.
using TurnSeconds = std::function<double(int64_t stage, const Turn& turn)>;

struct ReplayedStep {
  double seconds = 0;
  double idle = 0;  // the share of it that a stage does nothing, as the mean of the stages
};

// Of all stages of a pipeline with one like `any`. As in StageLinks a stage goes on beside two sends in
// a direction, and receives what was sent first. Throws std::logic_error if the stages would wait for
// each other forever, or receive another thing than they need.
ReplayedStep replayStep(const PipelineStage& any, int64_t micros, const TurnSeconds& seconds);

// What passes of a run of layers take, in seconds.
struct PassSeconds {
  double forward = 0;
  double backward = 0;
};

// The same with what passes through each run of layers took, by run.
ReplayedStep replayStep(const PipelineStage& any, int64_t micros,
                        std::span<const PassSeconds> runs);

}  // namespace weft::train
