// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "shard/checkpoint_index.h"
#include "shard/safetensors.h"
#include "shard/sharded_optimizer.h"

namespace weft {

// One rank's part in writing a checkpoint: what there is to write, and the writing.
class SaveJob {
 public:
  // Of the state as it is. The data stay where they are, and must stay as they are until run() is
  // through.
  static Status make(ShardedOptimizer& shard, const std::string& dir, const std::string& meta,
                     SaveJob* out);
  // Takes a copy of the data.
  Status copy();
  // Writes, over these ranks. Collective, and the same result on all.
  Status run(Communicator* ranks);

 private:
  void collect(ShardedOptimizer& shard);
  void add(const Layout& layout, std::uint32_t parameter, const std::string& array,
           std::uint64_t from, std::uint64_t elements, DType type, const void* data);
  Status writeShard(const std::string& folder, CheckpointIndex::File* file) const;
  Status shareFiles(Communicator* ranks, const CheckpointIndex::File& mine);

  std::string dir_;
  int timeoutMs_ = 0;  // for all of it
  std::uint32_t rank_ = 0, writers_ = 1;
  CheckpointIndex index_;
  std::vector<Tensor> tensors_;
  std::vector<const void*> data_;  // of each
  ShardMemory copy_;
};

}  // namespace weft
