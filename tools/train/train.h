// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/train/options.h"
#include "tools/train/reports/summary.h"
#include "weft/weft.hpp"

namespace weft::train {

// Collective: one training from the look at its files to its last report, by all of `world`; `team` are
// those that train one model, which is all of them or, with options.independent, a part. Throws
// SharedFailure where all of a team know what is wrong. Returns the exit code, and on rank 0 what the
// training came to, if it made a step.
int train(Options options, Communicator& world, Communicator& team, Summary* summary);

}  // namespace weft::train
