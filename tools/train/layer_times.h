// SPDX-License-Identifier: Apache-2.0
// How long the layers of a model take on the ranks that are there.
#pragma once

#include "tools/train/batch.h"
#include "tools/train/options.h"
#include "tools/train/parallel_groups.h"

namespace weft::train {

// Seconds of a batch, forward and backward.
struct LayerTimes {
  double embedding = 0, block = 0, head = 0;
};

// Collective: medians of some runs and of all ranks, the same on each. A model of one block, in the parts that tensor
// groups have, is made for it and goes again. What precision, dropout and --recompute say counts; the gathers of ZeRO-3 do
// not.
LayerTimes measureLayers(const Options& options, ParallelGroups& groups, const Batch& batch);

}  // namespace weft::train
