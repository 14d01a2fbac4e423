// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/train/options.h"
#include "tools/train/report.h"
#include "tools/train/trainer.h"
#include "tools/train/training_data.h"
#include "weft/weft.hpp"

namespace weft::train {

// The lines before the steps: who trains what, how, and on which data.
void printHead(Report& report, const Options& options, const Communicator& world, int threads,
               const Trainer& trainer, const TrainingData& data);

}  // namespace weft::train
