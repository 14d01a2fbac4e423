// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/work_stream.h"
#include "shard/gatherer.h"
#include "shard/reducer.h"
#include "shard/state.h"
#include "shard/updater.h"

namespace weft {

struct MicroStepArgs {
  bool boundary = true;  // the optimizer steps after this backward
  double learningRate = 1e-3;
  double weightDecay = 0;
  double clipNorm = 0;        // 0: no clipping
  double lossScale = 1;       // what the loss was multiplied with
  double divisor = 0;         // what the sum of all ranks' gradients is divided by; 0: ranks
  bool skipNonFinite = true;  // no update if a gradient is infinite or NaN
};

struct StepOutcome {
  double gradientNorm = 0;  // of the averaged gradients, before clipping
  double clip = 1;          // what they were multiplied with
  std::uint64_t nonFinite = 0;
  bool skipped = false;
  int badParameter = -1, badRank = -1;  // the first that was not finite, and who brought it
  double exposedSeconds = 0;            // that acquire() and wait() waited since the step before
};

// One rank's end of a sharded optimizer: the whole training step but for forward and backward. A
// micro-step is begin(), ready() for each trained parameter in any order, done(); after the
// boundary of a step, wait(). The work is done by a thread of its own while backward runs: buckets
// are reduced in one order on all ranks, each as soon as it and all before it are complete.
//
// begin() waits until the gradients of the micro-step before are taken: call it after forward. All
// of these are called by one thread at a time.
class ShardedOptimizer {
 public:
  // Collective over `parent`, in turn. InvalidArgument if ranks disagree, naming rank and
  // parameter.
  static Status create(Communicator& parent, const ShardConfig& config,
                       std::vector<ParameterSpec> parameters,
                       std::unique_ptr<ShardedOptimizer>* out);
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
  void fail(const Status& status);
  // Ends everything in flight, on all ranks. Any thread.
  void abort() { mesh_.abort(); }

 private:
  enum class Phase { Idle, Backward, Reducing };  // what of begin, done, wait came last
  using Clock = std::chrono::steady_clock;

  // What each rank says of a step, for all to decide alike.
  struct Word {
    ExactSum::Words squares;
    std::uint64_t nonFinite, firstBad;
    std::int32_t badRank;
    std::uint32_t missing;  // a parameter that was not ready, counted from 1
    std::uint64_t args;     // of the arguments
    Reducer::EarlyBad early;
  };

  ShardedOptimizer(std::string name, int timeoutMs);
  Status usage(std::string_view what) const;
  void launchComplete();
  void launch(std::uint32_t bucket);
  Status reduceOne(std::uint32_t bucket, const MicroStep& micro);
  Status finishStep(std::uint32_t missing);
  Word mine(std::uint32_t missing);
  Status shareWords();
  Status judge(StepOutcome* outcome);
  Status updateAll(const StepOutcome& outcome);
  Status shareFailures();
  std::uint64_t argsPrint() const;
  void markUpdated(std::uint32_t bucket);
  void endStep();
  bool givesBack() const;
  Status clearGradients();
  Status awaitUpdate(std::uint32_t bucket);
  Status checkBucket(std::uint32_t bucket) const;
  double averaging() const;  // what sums of gradients are multiplied with

  const std::string name_;
  const int timeoutMs_;
  Mesh mesh_;
  ShardState state_;
  std::unique_ptr<Reducer> reducer_;
  std::unique_ptr<Updater> updater_;

  // Of the caller's thread.
  Phase phase_ = Phase::Idle;
  MicroStepArgs args_;
  std::uint64_t micro_ = 0;             // micro-steps since the last step
  std::uint64_t micros_ = 0;            // of the last step
  std::vector<std::uint8_t> isReady_;   // by parameter
  std::vector<std::uint32_t> missing_;  // by bucket
  std::uint32_t nextBucket_ = 0;
  Clock::duration waited_{};  // in acquire() and wait(), since the last step

  // Of the worker, read after it has been waited for.
  StepOutcome outcome_;
  Status result_;        // of the step
  bool goesOn_ = false;  // whatever it is, all ranks have it and can take the next
  Status reduced_;       // of the reductions
  // What ranks tell each other: kept, as peers that share our memory may be at it for a moment
  // after a call was aborted.
  Word own_{};
  std::vector<Word> words_;
  std::vector<std::uint32_t> failures_;

  std::mutex mutex_;
  std::condition_variable updated_;
  std::uint32_t pending_ = 0;            // steps that are queued
  std::vector<std::uint8_t> isCurrent_;  // by bucket: no update is to come
  bool stepEnded_ = true;
  Status broken_;

  std::unique_ptr<WorkStream> worker_;  // these end first
  std::unique_ptr<Gatherer> gatherer_;  // null unless parameters are sharded
};

}  // namespace weft
