// SPDX-License-Identifier: Apache-2.0
// Which ranks train together, and as what. Neighbours are a tensor group, whose ranks have a part of
// each layer and the same batch; the ranks that have the same part are data parallel, and share it
// (Megatron-LM's order, arXiv 1909.08053). Rank d T + t of T to a tensor group has part t and batch d.
// Both have communicators of their own, each of which one thread uses: forward and backward the
// tensor group's, the shard its copy of the data-parallel one. So calls of one never wait for calls
// of the other that come later on another rank.
#pragma once

#include <cstdint>

#include "tools/train/tensor_part.h"
#include "weft/weft.hpp"

namespace weft::train {

class ParallelGroups {
 public:
  // Collective. `all`, which outlives this, is cut into tensor groups of so many, which divides it.
  // Reproducible ones add in the same order wherever their ranks are.
  ParallelGroups(Communicator& all, int64_t tensor, bool reproducible);

  Communicator& all() { return all_; }
  // Those that have this rank's part, by batch.
  Communicator& data() { return part_.count == 1 ? all_ : data_; }
  // Null where each rank has the whole model.
  Communicator* tensor() { return part_.count == 1 ? nullptr : &tensor_; }
  TensorPart part() const { return part_; }
  // The rank of `all` with a part and a rank of data().
  int64_t rankOf(int64_t part, int64_t dataRank) const { return dataRank * part_.count + part; }

 private:
  Communicator& all_;
  TensorPart part_;
  Communicator data_, tensor_;
};

}  // namespace weft::train
