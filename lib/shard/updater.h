// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/epilogue.h"
#include "shard/fold.h"
#include "shard/state.h"

namespace weft::shard {

// The way of parameters up: steps this rank's part of a bucket, a tile at a time, and hands each
// tile on to the ranks that need it while the next is stepped. One thread at a time.
class Updater : private plan::Epilogue {
 public:
  // Both outlive it.
  Updater(const Mesh& mesh, ShardState& state);

  void begin(const StepSettings& settings, int timeoutMs);
  // The first failure of a caller's optimizer since begin().
  struct Failure {
    static constexpr std::uint32_t kNone = ~0u;
    Status status;
    std::uint32_t parameter = kNone;
  };
  const Failure& failure() const { return failure_; }
  // LAMB: m, v and the update in place of the gradients, and each parameter's trust ratio, which is
  // that of unsharded LAMB to the bit. Collective.
  Status prepare();
  // From the final sums to new parameters wherever they are kept. Collective.
  Status update(std::uint32_t bucket);
  // The same from weights that have been set, without a step. Collective.
  Status publish(std::uint32_t bucket);
  // The same fused with the reduction: from the wire to new parameters in one schedule. For groups
  // of one level, State. Adds to the report. Collective.
  Status step(std::uint32_t bucket, std::byte* wire, GradientReport* report);

 private:
  // The kernel: makes new parameters of reduced gradients, or of the addends of gradients.
  void run(void* result, std::span<const void* const> addends, std::uint64_t first,
           std::size_t count) override;
  bool runToAll(std::span<void* const> results, std::span<const void* const> addends,
                std::uint64_t first, std::size_t count) override;

  void stepFused(const StateRun& run, std::uint64_t first);
  void reportAnew(std::uint64_t first, std::size_t count);
  void aim(std::uint32_t bucket);
  std::byte* keptAt(const ShardState::Range& part) const;
  Status gather(Level level, std::byte* to, std::uint64_t elements, bool steps);
  void stepAlone(std::byte* result);
  Status shareTrust(std::vector<TrustSums>* sums);

  const Mesh& mesh_;
  ShardState& state_;
  StepSettings settings_;
  int timeoutMs_ = 0;
  bool folds_ = false;  // the addends are gradients
  FoldEpilogue fold_;
  std::uint32_t bucket_ = 0;
  ShardState::Range own_;                // of the bucket
  GradientReport* report_ = nullptr;     // of step()
  std::vector<float> reduced_;           // a tile of gradients, of step()
  std::vector<reduce::Addend> addends_;  // of a run
  std::vector<void*> targets_;
  std::vector<const void*> inputs_;
  std::vector<double> ratios_;  // by parameter
  Failure failure_;
};

}  // namespace weft::shard
