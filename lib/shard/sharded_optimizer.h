// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shard/gatherer.h"
#include "shard/readiness.h"
#include "shard/step_worker.h"

namespace weft::shard {

// One rank's end of a sharded optimizer: the whole training step but for forward and backward. A
// micro-step is begin(), ready() for each trained parameter in any order, done(); after the
// boundary of a step, wait(). The work is done by a thread of its own while backward runs: buckets
// are reduced in one order on all ranks, each as soon as it and all before it are complete.
//
// begin() waits until the gradients of the micro-step before are taken: call it after forward. All
// of these are called by one thread at a time.
class ShardedOptimizer {
 public:
  // Collective over `parent` and, where it is not null, over `parts`, as Mesh::make has them, in
  // turn. InvalidArgument if ranks disagree, naming rank and parameter.
  static Status create(comm::Communicator& parent, const ShardConfig& config,
                       std::vector<ParameterSpec> parameters,
                       std::unique_ptr<ShardedOptimizer>* out, comm::Communicator* parts = nullptr);
  ~ShardedOptimizer();

  const Mesh& mesh() const { return mesh_; }
  ShardState& state() { return state_; }
  const Layout& layout() const { return state_.layout(); }
  const std::string& name() const { return name_; }
  int timeoutMs() const { return timeoutMs_; }
  std::int64_t steps();  // done, also while one is under way

  // Takes the parameters as they are in the buffers, after root's (>= 0) have gone to all.
  // Collective.
  Status start(int root);
  // The fp32 weights of 16-bit parameters. Local, at rest.
  Status setWeights(std::uint32_t parameter, const float* weights);

  Status begin(const MicroStepArgs& args);
  Status ready(std::uint32_t parameter);
  Status done();
  Status wait(StepOutcome* outcome);
  // Until the bucket's parameters are those of the last step, gathering them where they are
  // sharded.
  Status acquire(std::uint32_t bucket);
  // Begins that gathering.
  Status prefetch(std::uint32_t bucket);
  // Drops a gathered copy. Local.
  Status release(std::uint32_t bucket);

  // InvalidUsage, naming the call, unless between two steps. After it the worker is at rest.
  Status atRest(std::string_view call);
  // Makes parameters of weights that have been set from outside. Collective.
  Status publish();
  // Every later step fails with this.
  void fail(const Status& status) { (void)worker_->progress().fail(status); }
  // The same on all ranks, whatever they are at.
  void breakOff(const Status& why) { fail(why), mesh_.fail(why); }
  // Ends everything in flight, on all ranks. Any thread.
  void abort();

 private:
  enum class Phase { Idle, Backward, Reducing };  // what of begin, done, wait came last
  using Clock = std::chrono::steady_clock;

  ShardedOptimizer(std::string name, int timeoutMs)
      : name_(std::move(name)), timeoutMs_(timeoutMs) {}
  std::string who() const;  // how errors begin
  Status usage(std::string_view what) const;
  Status neverReady(std::uint32_t missing, std::string_view so) const;
  void reduceBuckets(bool all);
  void releaseAll();

  const std::string name_;
  const int timeoutMs_;
  Mesh mesh_;
  ShardState state_;
  Readiness readiness_{state_.layout()};
  Phase phase_ = Phase::Idle;
  bool hasWeights_ = false;   // of start(), or from outside
  bool atBoundary_ = true;    // is this micro-step the last one?
  Clock::duration waited_{};  // in acquire() and wait(), since the last step

  std::unique_ptr<StepWorker> worker_;
  std::unique_ptr<Gatherer> gatherer_;  // null unless parameters are sharded; waits for the worker
};

}  // namespace weft::shard
