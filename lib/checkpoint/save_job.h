// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/index.h"
#include "checkpoint/safetensors.h"
#include "comm/communicator.h"

namespace weft::checkpoint {

// One rank's part in writing a checkpoint.
struct SaveJob {
  std::string dir;
  CheckpointIndex index;                // all but its files
  std::uint32_t rank = 0, writers = 1;  // ranks below `writers` write a file each
  int timeoutMs = 0;                    // for exchanges between ranks
  std::vector<Tensor> tensors;          // in this rank's file
  std::vector<const void*> data;        // of each, which stay as they are until all is written

  // Writes, over these ranks; null for one. Collective, and the same result on all.
  Status run(comm::Communicator* ranks) const;

 private:
  Status writeShard(const std::string& folder, CheckpointIndex::File* file) const;
  Status shareFiles(comm::Communicator* ranks, const CheckpointIndex::File& mine,
                    std::vector<CheckpointIndex::File>* all) const;
};

}  // namespace weft::checkpoint
