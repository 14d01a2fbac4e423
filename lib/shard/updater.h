// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shard/own_work.h"
#include "shard/split_parameters.h"
#include "shard/state.h"
#include "shard/stepper.h"

namespace weft::shard {

// The way of parameters up: steps this rank's part of a bucket, a tile at a time, and hands each
// tile on to the ranks that need it while the next is stepped. One thread at a time.
class Updater {
 public:
  // Both references outlive it.
  Updater(const Mesh& mesh, ShardState& state, SplitParameters split);

  void begin(const StepSettings& settings, int timeoutMs);
  // Of a caller's optimizer since begin().
  const Stepper::Failure& failure() const { return stepper_.failure(); }
  // LAMB and LANS: m and v, LAMB's update in place of the gradients, and each parameter's trust
  // ratios, which are those of the unsharded optimizer to the bit. Collective.
  Status prepare();
  // From the final sums to new parameters wherever they are kept. Collective.
  Status update(std::uint32_t bucket);
  // The same from weights that have been set, without a step. Collective.
  Status publish(std::uint32_t bucket);
  // The same fused with the reduction: from the wire to new parameters in one schedule. For groups
  // of one level, State. Adds to the report. Collective.
  Status step(std::uint32_t bucket, std::byte* wire, GradientReport* report);

 private:
  Stepper::Job job() const;
  void aim(std::uint32_t bucket);
  std::byte* keptAt(const ShardState::Range& part) const;
  Status gather(Level level, const plan::Call& call, bool steps);
  void stepAlone(std::byte* result);
  template <class Sums, class Add>
  Status sumByParameter(double bytes, std::vector<Sums>* all, const Add& add);
  template <class Sums>
  Status share(comm::Communicator* ranks, std::vector<Sums>* sums);
  template <class Sums>
  Status sumOverParts(std::vector<Sums>* all);
  Status normalize();

  const Mesh& mesh_;
  ShardState& state_;
  StepSettings settings_;
  int timeoutMs_ = 0;
  OwnWork work_;
  Stepper stepper_;
  std::uint32_t bucket_ = 0;
  ShardState::Range own_;     // of the bucket
  std::vector<Trust> trust_;  // by parameter
  SplitParameters split_;
};

}  // namespace weft::shard
