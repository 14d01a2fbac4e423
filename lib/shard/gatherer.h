// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "engine/work_stream.h"
#include "shard/mesh.h"
#include "shard/state.h"

namespace weft {

// Whole copies of the parameters that are sharded over the Param level of a mesh: each bucket is
// gathered by a thread of its own, in the order in which begin() and wait() name it, which must be
// the same on all ranks. All calls by one thread at a time.
class Gatherer {
 public:
  // Waits until a bucket's parameters are those of the last step; called on the gatherer's thread.
  using AwaitUpdate = std::function<Status(std::uint32_t bucket)>;

  // At first all copies are there.
  Gatherer(Mesh& mesh, ShardState& state, int timeoutMs, AwaitUpdate awaitUpdate);

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
  const int timeoutMs_;
  const AwaitUpdate awaitUpdate_;

  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Copy> copies_;    // by bucket
  std::vector<Status> failed_;  // why it is absent, by bucket

  WorkStream stream_;  // last: it ends first
};

}  // namespace weft
