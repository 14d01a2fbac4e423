// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/work_stream.h"
#include "shard/reducer.h"
#include "shard/step_outcome.h"
#include "shard/step_progress.h"
#include "shard/updater.h"

namespace weft::shard {

// The worker's side of a sharded optimizer: reduces buckets while backward runs, then exchanges
// what ranks have to say of the step, steps, and hands out parameters. The public calls come from
// one thread at a time, and queue; but progress() is for any thread.
class StepWorker {
 public:
  // Both outlive it. `who` begins its errors.
  StepWorker(Mesh& mesh, ShardState& state, SplitParameters split, std::string who, int timeoutMs);

  // Begins a micro-step when what was queued is done; returns the error that has ended steps.
  Status begin(const MicroStepArgs& args);
  void reduce(std::uint32_t bucket);
  void endMicroStep() { ++micro_; }
  // After the last one: the optimizer's step. `missing` as in StepReport.
  void step(std::uint32_t missing);
  // Until that is done.
  Status wait(StepOutcome* outcome);

  bool isBetweenSteps() const { return micro_ == 0; }
  // Until nothing is queued; the error that has ended steps.
  Status rest();
  // Makes parameters of weights that have been set. On this thread, at rest. Collective.
  Status publish();
  StepProgress& progress() { return progress_; }

 private:
  bool isEager() const { return state_.config().eager; }
  bool givesBack() const;
  std::uint64_t runLength() const;
  Status checkMicroSteps(const MicroStepArgs& args) const;
  double averaging() const { return averagingOf(args_, mesh_.ranks()); }
  Status reduceNow(std::uint32_t bucket, const MicroStep& micro);
  Status stepNow(std::uint32_t missing);
  Status updateAll();
  Status shareFailures();
  Status decide();
  Status clearGradients();

  Mesh& mesh_;
  ShardState& state_;
  const std::string who_;
  const int timeoutMs_;
  Reducer reducer_;
  Updater updater_;
  StepProgress progress_;

  // Written by the caller while nothing is queued.
  MicroStepArgs args_;
  std::uint64_t micro_ = 0;   // micro-steps since the last step
  std::uint64_t micros_ = 0;  // of the last step

  // Written by the worker; read after progress().wait().
  StepOutcome outcome_;
  Status result_;        // of the step
  bool goesOn_ = false;  // all ranks have the same result, and can take the next step
  Status reduced_;       // of the reductions
  // What ranks tell each other: kept, as peers that share our memory may be at it for a moment
  // after a call was aborted.
  StepReport own_{};
  std::vector<StepReport> reports_;
  PartReport ownPart_{};
  std::vector<PartReport> parts_;
  std::vector<std::uint32_t> failures_, failedParts_;

  engine::WorkStream stream_;  // last: it ends first
};

}  // namespace weft::shard
