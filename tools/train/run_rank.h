// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/train/options.h"
#include "tools/train/reports/summary.h"
#include "weft/weft.hpp"

namespace weft::train {

// Trains as the rank that the launcher made this process, or as the only one. Prints its own
// errors. Returns the exit code.
int runRank(const Options& options);

// Collective: one training on these ranks, or with options.independent one on each, whose end they all know of. Prints
// what is wrong. Returns the exit code, and on rank 0 what the training came to.
int trainOn(const Options& options, Communicator& ranks, Summary* summary);

}  // namespace weft::train
