// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/train/options.h"

namespace weft::train {

// Finds before the first step what would be found after the last: files of the options that cannot
// be written, a checkpoint to go on from that is not there, and weights to begin with that are of
// another model. Throws Failure.
void checkFiles(const Options& options);

// Those that tell of all steps when the last one is made, as a command line names them.
std::string filesOfSteps(const Options& options);

}  // namespace weft::train
