// SPDX-License-Identifier: Apache-2.0
#include "tools/train/parallel_groups.h"

namespace weft::train {

ParallelGroups::ParallelGroups(Communicator& all, int64_t tensor, bool reproducible)
    : all_(all), part_{all.rank() % tensor, tensor} {
  if (tensor == 1) return;
  const int group = all.rank() / static_cast<int>(tensor);
  data_ = all.split(static_cast<int>(part_.index), group);
  weftConfig_t config = defaultConfig();
  if (reproducible) config.reproducible = 1;
  tensor_ = all.split(group, static_cast<int>(part_.index), &config);
}

}  // namespace weft::train
