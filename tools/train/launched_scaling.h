// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/train/options.h"
#include "weft/weft.hpp"

namespace weft::train {

// Collective: the scaling table of ranks that a launcher has started, on whatever hosts. Each run of it is on the first
// so many of them, split off; the others wait. Rank 0 prints it. Throws SharedFailure, on every rank, where there are
// fewer ranks than options.scaling asks for, or a run has failed.
void scaleOnLaunchedRanks(const Options& options, Communicator& world);

}  // namespace weft::train
