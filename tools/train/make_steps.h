// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/train/options.h"
#include "tools/train/pace.h"
#include "tools/train/report.h"
#include "tools/train/trainer.h"

namespace weft::train {

// Collective. Trains until a step is the last one, evaluates and saves in between, and returns why no step follows.
// `report` is rank 0's.
Stop makeSteps(const Options& options, Trainer& trainer, PaceMeter& meter, Report* report);

}  // namespace weft::train
