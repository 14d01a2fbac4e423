// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/epilogue.h"
#include "shard/fold.h"
#include "shard/of_threads.h"
#include "shard/state.h"

namespace weft::shard {

// The epilogue that steps: makes new parameters of reduced gradients, or of the addends of
// gradients. A caller's optimizer is one thread's, every other one is for all threads of a rank.
class Stepper : public plan::Epilogue {
 public:
  struct Job {
    StepSettings settings;
    std::uint32_t bucket = 0;
    ShardState::Range own;             // of the bucket
    const Trust* trust = nullptr;      // by parameter
    bool folds = false;                // the addends are gradients
    GradientReport* report = nullptr;  // of those
  };
  // The first failure of a caller's optimizer.
  struct Failure {
    static constexpr std::uint32_t kNone = ~0u;
    Status status;
    std::uint32_t parameter = kNone;
  };

  // It outlives this.
  explicit Stepper(const ShardState& state);
  ~Stepper() override;

  void begin(const Job& job);
  // After a call: what all threads have found is in the job's report.
  void end();
  const Failure& failure() const { return failure_; }
  void forget() { failure_ = {}; }

  void run(void* result, std::span<const void* const> addends, std::uint64_t first,
           std::size_t count) override;
  bool runToAll(std::span<void* const> results, std::span<const void* const> addends,
                std::uint64_t first, std::size_t count) override;
  Epilogue* ofThread(std::uint32_t k) override;
  double bytesBeside() const override;

 private:
  struct Beside;

  void stepFused(const StateRun& run, std::uint64_t first);
  void reportAnew(std::uint64_t first, std::size_t count);

  const ShardState& state_;
  Job job_;
  FoldEpilogue fold_;
  Failure failure_;
  OfThreads<Beside> beside_;
  std::vector<float> reduced_;           // a tile of gradients
  std::vector<reduce::Addend> addends_;  // of a run
  std::vector<void*> targets_;
  std::vector<const void*> inputs_;
};

}  // namespace weft::shard
