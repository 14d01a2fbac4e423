// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/index.h"
#include "comm/communicator.h"
#include "reduce/reduce.h"

namespace weft::checkpoint {

// A run of one parameter in one of its arrays.
struct SavedRun {
  std::string parameter, array;
  std::uint64_t from = 0, elements = 0;
  reduce::DType type = reduce::DType::F32;
  const void* data = nullptr;  // stays as it is until all is written

  std::uint64_t bytes() const { return elements * reduce::sizeOf(type); }
};

// One rank's part in writing a checkpoint.
struct SaveJob {
  std::string dir;
  CheckpointIndex index;                // all but its files
  std::uint32_t rank = 0, writers = 1;  // ranks below `writers` write a file each
  int timeoutMs = 0;                    // for exchanges between ranks
  std::vector<SavedRun> runs;           // in this rank's file, one of each array

  // Writes, over these ranks; null for one. Collective, and the same result on all.
  Status run(comm::Communicator* ranks) const;

 private:
  Status makeHeader(std::string* header) const;
  Status writeShard(const std::string& folder, CheckpointIndex::File* file) const;
  Status shareFiles(comm::Communicator* ranks, const CheckpointIndex::File& mine,
                    std::vector<CheckpointIndex::File>* all) const;
};

}  // namespace weft::checkpoint
