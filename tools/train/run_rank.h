// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/train/options.h"

namespace weft::train {

// Trains as the rank that the launcher made this process, or as the only one. Prints its own
// errors. Returns the exit code.
int runRank(const Options& options);

}  // namespace weft::train
