// SPDX-License-Identifier: Apache-2.0
// Which blocks each run of layers of a pipeline gets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/train/options.h"
#include "tools/train/parallel_groups.h"
#include "tools/train/training_data.h"

namespace weft::train {

struct Partition {
  std::vector<int64_t> blocks;  // of each run; empty: as the sizes of matrices say
  std::string told;             // how it came about, for the head of a report; empty: by sizes
};

// Collective: that of the checkpoint which the run goes on from, as its parts are files of their own, or else what
// --partition says, by the layers' times on these ranks.
Partition partitionFor(const Options& options, ParallelGroups& groups, const TrainingData& data);

}  // namespace weft::train
