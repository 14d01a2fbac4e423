// SPDX-License-Identifier: Apache-2.0
// What the command line says of sharding, and the model's memory in a shard.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/train/degrees.h"
#include "tools/train/model.h"
#include "tools/train/options.h"
#include "tools/train/parallel_groups.h"
#include "tools/train/parameters.h"
#include "weft/shard.h"
#include "weft/weft.hpp"

namespace weft::train {

// What a model computes with.
Element elementOf(const Options& options);
Compute computeOf(const Options& options);

// Owns the weights and gradients of a model, and their way through a step.
class ShardedParameters {
 public:
  // Collective. Of this rank's part of the model.
  ShardedParameters(const Options& options, ParallelGroups& groups, const Parameters& parameters);

  operator weftShard_t() const noexcept { return shard_; }
  std::vector<ParameterMemory> memory() const;
  ParameterMemory memoryOf(size_t parameter) const;
  weftShardInfo_t info() const;

  // Before and after the use of a layer: brings its buckets to their place, begins to bring the one
  // that the pass uses next, and lets those go that it does not use any more.
  void acquire(size_t firstParameter, Pass pass);
  void release(size_t firstParameter, Pass pass);
  // All of them.
  void acquireAll();

  void check(weftResult_t result) const { weft::check(result); }

 private:
  using Owner = Handle<weftShard_t, weftShardDestroy>;

  Owner shard_;
  // A layer of one of the stage's runs, which passes go through one by one.
  struct LayerOfRun {
    size_t run, layer;
  };
  void findLayers(const Parameters& parameters);

  size_t count_;                         // of parameters
  std::map<size_t, LayerOfRun> layers_;  // by first parameter
  std::vector<Residency> residency_;     // by run
};

}  // namespace weft::train
