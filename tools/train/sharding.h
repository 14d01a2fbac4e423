// SPDX-License-Identifier: Apache-2.0
// What the command line says of sharding, and the model's memory in a shard.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/train/degrees.h"
#include "tools/train/model.h"
#include "tools/train/options.h"
#include "tools/train/parameters.h"
#include "weft/shard.h"
#include "weft/weft.hpp"

namespace weft::train {

// Owns the weights and gradients of a model, and their way through a step.
class ShardedParameters {
 public:
  // Collective.
  ShardedParameters(const Options& options, Communicator& team,
                    const std::vector<Parameter>& parameters);

  operator weftShard_t() const noexcept { return shard_; }
  std::vector<ParameterMemory> memory() const;
  weftShardInfo_t info() const;

  // Before and after the use of a run of parameters, if they are sharded: brings their buckets to
  // their place, begins to bring the one that the pass uses next, and lets them go when no layer
  // uses them any more.
  void acquire(size_t firstParameter, size_t count, Pass pass);
  void release(size_t firstParameter, size_t count);
  // All of them.
  void acquireAll();

  void check(weftResult_t result) const { weft::check(result); }

 private:
  using Owner = Handle<weftShard_t, weftShardDestroy>;

  std::set<int> bucketsOf(size_t firstParameter, size_t count) const;

  Owner shard_;
  std::vector<int> buckets_;  // by parameter
  std::vector<int> users_;    // by bucket: layers that are at work
};

}  // namespace weft::train
