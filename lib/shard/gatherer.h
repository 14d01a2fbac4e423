// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/work_stream.h"
#include "shard/mesh.h"
#include "shard/state.h"
#include "shard/step_progress.h"

namespace weft::shard {

// Whole copies of the parameters that are sharded over the Param level of a mesh: each bucket is
// gathered by a thread of its own, in the order in which begin() and wait() name it, which must be
// the same on all ranks. All calls by one thread at a time.
class Gatherer {
 public:
  // At first all copies are there. Each later one is of the parameters after `progress`.
  Gatherer(Mesh& mesh, ShardState& state, StepProgress& progress, int timeoutMs);

  void begin(std::uint32_t bucket);
  Status wait(std::uint32_t bucket);
  // Gives its memory back, after its gathering if that is under way.
  void drop(std::uint32_t bucket);
  bool isBusy();

 private:
  enum class Copy : std::uint8_t { Absent, Coming, Here };

  Status gather(std::uint32_t bucket);

  Mesh& mesh_;
  ShardState& state_;
  StepProgress& progress_;
  const int timeoutMs_;

  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Copy> copies_;    // by bucket
  std::vector<Status> failed_;  // why it is absent, by bucket

  engine::WorkStream stream_;  // last: it ends first
};

// Brings a bucket of an array (of ShardState::arrayNames()) together in fp32 on every rank, laid
// out as the bucket is. Collective.
Status gatherArray(const Mesh& mesh, const ShardState& state, std::uint32_t bucket,
                   std::size_t array, std::vector<float>* all, int timeoutMs);

}  // namespace weft::shard
