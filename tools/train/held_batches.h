// SPDX-License-Identifier: Apache-2.0
// Micro-batches between the first of a stage's runs of layers and the last: each run reads the same one.
#pragma once

#include <cstdint>
#include <map>

#include "tools/train/batch.h"
#include "tools/train/read_ahead.h"

namespace weft::train {

class HeldBatches {
 public:
  // Of so many runs, those that come.
  HeldBatches(ReadAhead& ahead, int64_t runs) : ahead_(ahead), runs_(runs) {}

  // What goes forward through a run next: the first one takes a new batch, the others get it again.
  Batch of(int64_t micro, int64_t run) {
    if (runs_ == 1) return ahead_.take();
    if (run == 0) return held_[micro] = ahead_.take();
    if (run + 1 < runs_) return held_.at(micro);
    return std::move(held_.extract(micro).mapped());
  }

 private:
  ReadAhead& ahead_;
  int64_t runs_;
  std::map<int64_t, Batch> held_;
};

}  // namespace weft::train
