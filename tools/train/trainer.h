// SPDX-License-Identifier: Apache-2.0
// One rank's training step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/train/batch_source.h"
#include "tools/train/held_batches.h"
#include "tools/train/loss_scale.h"
#include "tools/train/model.h"
#include "tools/train/offload_file.h"
#include "tools/train/options.h"
#include "tools/train/parallel_groups.h"
#include "tools/train/pass_meter.h"
#include "tools/train/pipeline_schedule.h"
#include "tools/train/position.h"
#include "tools/train/read_ahead.h"
#include "tools/train/sharding.h"
#include "tools/train/stopwatch.h"
#include "tools/train/tied_embedding.h"
#include "tools/train/training_data.h"
#include "weft/weft.hpp"

namespace weft::train {

// Why no step follows; of several reasons the last one here counts.
enum class Stop { kNo, kTimeIsUp, kTerminated };

struct StepReport {
  int64_t step;         // 0, 1, ...
  double loss;          // mean over all samples of all ranks, in nats
  double gradientNorm;  // of the averaged gradients, before clipping
  double learningRate;
  double seconds;           // since the step before ended
  double exposedSeconds;    // that forward, or the end of the step, waited for communication
  double wireBytes;         // that this rank moved, for each parameter
  double stageWaitSeconds;  // that it waited for other stages of a pipeline
  Stop stop;                // the same on all ranks: some rank wanted it in this step
  double lossScale;         // that it was made with; 1 but for fp16
  int64_t skippedSteps;     // ever, this one included
  std::string
      overflow;  // where a gradient was too large for fp16, so that it was skipped; or empty
  std::vector<PassSeconds> passes;  // of this stage, by its runs of layers
};

class Trainer {
 public:
  // Collective: checks that all ranks have the same text and settings, and gives them the initial
  // weights of the first that has their part. `data` and `groups` must outlive this.
  Trainer(const Options& options, ParallelGroups& groups, const TrainingData& data);

  // Collective. Forward and backward of the next step, whose optimizer then runs under the forward
  // of the one after it: the report is of the step before, if one was under way. If that was the
  // last, because some rank wanted to stop, no other is begun. `wantsStop` is asked late in the step.
  std::optional<StepReport> step(const std::function<Stop()>& wantsStop);
  // Collective. Ends the step that is under way, if one is. Throws SharedFailure on every rank, as
  // step() does, if some loss or the norm is not finite, which of fp16 gradients a smaller loss scale comes before.
  std::optional<StepReport> finish();
  int64_t begun() const { return ended_ + (underWay_ ? 1 : 0); }  // steps, ever

  // The rest is for between steps, after finish().

  // Whether there is something to evaluate.
  bool validates() const { return validation_ != nullptr; }
  // Collective. The mean loss of --eval-batches of validation, the same ones each time; of a classification all of it.
  // Nothing, if some rank wanted to give up.
  std::optional<Evaluation> evaluate(const std::function<bool()>& givesUp);
  // Collective. Saves while training goes on, unless `wait`; what is saved already is not saved again. Throws
  // SharedFailure if the disk takes no more.
  void save(const std::string& folder, bool wait);
  // Goes on where a checkpoint was made, by any number of ranks with the same global batch and as
  // many stages and as many to a tensor group. If the folder's last one is damaged, from the one before, of which a line on
  // standard error tells.
  void resume(const std::string& folder);
  // The same with a part of what a checkpoint has: what is not kept is as at the beginning.
  void goOn(const std::string& folder, const Kept& kept);
  // Collective. Writes the weights by Hugging Face's names.
  void exportTo(const std::string& file);

  size_t parameters() const { return whole_.size(); }
  // What reading and preparing the batches of the steps took, and how much of it the steps waited for.
  ReadAhead::Times loading() const {
    ReadAhead::Times times = ahead_.times();
    times.made += batches_->secondsBeside();
    return times;
  }
  // What --offload has put away.
  std::optional<OffloadFile::Figures> offloaded() const;
  weftShardInfo_t info() const { return shard_.info(); }
  // Collective. Of all weights, equal on all ranks; which have their copies alike, or so says the
  // SharedFailure of all.
  uint64_t weightsFingerprint(const std::string& which);

 private:
  void visitInitialWeights(const std::function<void(size_t, const float*)>& take) const;
  void shareInitialWeights();
  void shareFp32Weights();
  void gatherLayersInTime();
  std::function<Batch(uint64_t)> batchesOf(const BatchSource& source, uint64_t steps) const;
  Position position() const;
  std::string load(const std::string& checkpoint, bool state);
  std::string loadLastGood(const std::string& folder, bool state);
  std::string loadLastGoodParts(const std::string& folder, bool state);
  double forward(const Turn& turn);
  void passes(double firstLoss, const std::function<Stop()>& wantsStop);
  void backward(const Turn& turn);
  void takeGradient(size_t parameter);
  uint64_t fingerprintOf(size_t parameter) const;
  uint64_t fingerprintOfOwn(bool copiesAlone);
  void agreeOnCopies(const std::string& which);
  void inAllParts(const std::function<void()>& work);
  uint64_t takeSave(const std::string& folder, uint64_t end);
  std::string metaOfSave();
  std::string settleScale(const weftStepStats_t& stats);
  std::string whereNotFinite(const weftStepStats_t& stats) const;
  double lossScale() const { return lossScale_ ? lossScale_->value() : 1; }
  double rate() const;
  weftStepArgs_t stepArgs(bool boundary) const;
  double meanLoss() const;
  int64_t evalSteps() const;
  std::optional<Evaluation> evaluateLosses(const std::function<bool()>& givesUp);
  std::optional<Evaluation> evaluateClasses(const std::function<bool()>& givesUp);
  std::vector<const double*> microsInOrder(const std::vector<double>& byRank, size_t stride,
                                           size_t ofMicro) const;
  double meanInOrder(const std::vector<double>& byRank, size_t stride) const;
  static double mostOfLast(const std::vector<double>& byRank, size_t stride);
  uint64_t firstSample(int64_t micro) const;
  uint64_t microBatch(uint64_t m, uint64_t rank) const;
  int64_t globalBatch() const { return options_.batch * options_.accumulate * dataRanks(); }
  int64_t dataRanks() const { return all_.size() / groups_.part().count(); }

  const Options& options_;
  ParallelGroups& groups_;
  Communicator& all_;
  std::unique_ptr<BatchSource> batches_;
  std::unique_ptr<BatchSource> validation_;  // null: none
  Parameters whole_;                         // of the model
  Parameters own_;                           // of this rank's part
  ShardedParameters shard_;
  std::shared_ptr<OffloadFile> offload_;  // null: none
  Model model_;
  std::optional<TiedEmbedding> tied_;  // where another stage has it, too
  std::vector<Turn> turns_;            // of a step
  // Micro-batches whose gradients the shard takes at once: with virtual stages, those that go backward
  // through a run of layers before any goes through another.
  int64_t together_;
  bool isComplete_ = true;      // they are, of the run that backward goes through
  std::vector<double> mine_;    // what this rank tells the others in a step: the loss of each
                                // micro-batch, and whether it wants to stop
  std::vector<double> shared_;  // everybody's, by rank
  Stream stream_;
  std::optional<LossScale> lossScale_;  // of fp16
  std::vector<size_t> late_;            // gradients that are ready, without overlap
  uint64_t moved_ = 0;
  double waited_ = 0;  // for other stages, before this step
  PassMeter passMeter_;
  int64_t ended_ = 0;      // steps
  int64_t saved_ = -1;     // steps of what lies in --save
  int64_t dataAhead_ = 0;  // steps that this data has been learned for, beyond ended_
  uint64_t data_;          // its fingerprint
  std::string order_;      // of its samples
  bool underWay_ = false;
  Stopwatch since_;  // the report of the step under way counts from here

  // Micro-batches of the steps, and of validation again and again; the last to be made, as their threads read the rest.
  ReadAhead ahead_;
  HeldBatches held_;
  std::optional<ReadAhead> validationAhead_;
};

}  // namespace weft::train
