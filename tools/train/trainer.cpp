// SPDX-License-Identifier: Apache-2.0
#include "tools/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tools/train/agreement.h"
#include "tools/train/fingerprint.h"
#include "tools/train/learning_rate.h"

namespace weft::train {
namespace {

size_t samplesPerStep(const Options& options, ParallelGroups& groups) {
  return static_cast<size_t>(options.batch * options.accumulate * groups.data().size());
}

std::optional<LossScale> lossScaleOf(const Options& options) {
  if (options.params != Params::kFloat16) return {};
  return options.lossScale > 0
             ? LossScale::fixed(options.lossScale)
             : LossScale::dynamic(options.initialLossScale, options.lossScaleWindow);
}

// Counts what a turn takes, less what it waits for other stages.
class TurnTimer {
 public:
  TurnTimer(PassMeter& meter, const Model& model, const Turn& turn)
      : meter_(meter), model_(model), turn_(turn) {}
  ~TurnTimer() { meter_.add(turn_, taken_.seconds() - (model_.waited() - waited_)); }
  TurnTimer(const TurnTimer&) = delete;
  TurnTimer& operator=(const TurnTimer&) = delete;

 private:
  PassMeter& meter_;
  const Model& model_;
  const Turn& turn_;
  const double waited_ = model_.waited();
  const Stopwatch taken_;
};

}  // namespace

Trainer::Trainer(const Options& options, ParallelGroups& groups, const TrainingData& data)
    : options_(options),
      groups_(groups),
      all_(groups.all()),
      batches_(data.training(samplesPerStep(options, groups))),
      validation_(evaluatesSometimes(options) ? data.validation(samplesPerStep(options, groups))
                                              : nullptr),
      whole_(parametersOf(options.shape)),
      own_(parametersOf(options.shape, groups.part())),
      shard_(options, groups, own_),
      offload_(options.offload ? std::make_shared<OffloadFile>(options.offloadFolder) : nullptr),
      model_(options.shape, computeOf(options), elementOf(options), Element::kFloat32,
             shard_.memory(), groups.model(options.sequenceParallel)),
      turns_(oneForwardOneBackward(groups.part().stage, options.accumulate)),
      together_(microsTogether(groups.part().stage)),
      mine_(static_cast<size_t>(options.accumulate) + 1),
      shared_(mine_.size() * static_cast<size_t>(all_.size())),
      lossScale_(lossScaleOf(options)),
      passMeter_(groups.part().stage.virtuals),
      data_(data.fingerprint()),
      order_(data.order(samplesPerStep(options, groups))),
      ahead_(batchesOf(*batches_, std::numeric_limits<uint64_t>::max())),
      held_(ahead_, groups.part().stage.virtuals) {
  if (validation_)
    validationAhead_.emplace(batchesOf(*validation_, static_cast<uint64_t>(evalSteps())));
  const std::string settings = commonSettings(options);
  agree(all_, "command line", fingerprint(std::span<const char>(settings)));
  agree(all_, "training text", data_);
  agree(all_, "vocabulary", batches_->vocabularyFingerprint());
  if (own_.firstIsInTwoStages)
    tied_.emplace(*groups.ends(), shard_.memoryOf(0).gradient, own_.list[0].size());
  shareInitialWeights();
  model_.onGradient([this](size_t parameter) { takeGradient(parameter); });
  gatherLayersInTime();
  model_.dropOut(options.dropout, options.seed);
  if (options.recompute || options.offload) model_.recomputeBlocks(offload_);
}

std::optional<OffloadFile::Figures> Trainer::offloaded() const {
  if (!offload_) return {};
  return offload_->figures();
}

// Forward begins when the first layer's weights are there; sharded ones are gathered while the
// layer before runs.
void Trainer::gatherLayersInTime() {
  model_.onLayer(
      {.before = [this](size_t first, size_t, Pass pass) { shard_.acquire(first, pass); },
       .after = [this](size_t first, size_t, Pass pass) { shard_.release(first, pass); }});
}

std::optional<StepReport> Trainer::step(const std::function<Stop()>& wantsStop) {
  if (!underWay_) since_ = Stopwatch();
  const double firstLoss = forward(turns_[0]);  // while the step before is still going on
  const std::optional<StepReport> before = finish();
  if (before && before->stop != Stop::kNo) {
    model_.forget();
    return before;
  }
  passes(firstLoss, wantsStop);
  underWay_ = true;
  return before;
}

std::optional<StepReport> Trainer::finish() {
  if (!underWay_) return {};
  weftStepStats_t stats{};
  stats.size = sizeof(stats);
  check(weftStepWait(shard_, &stats));
  check(weftStreamSynchronize(stream_), all_);

  const double loss = meanLoss();
  const double scale = lossScale();
  const std::string overflow = settleScale(stats);
  const uint64_t moved = shard_.info().wireBytes - std::exchange(moved_, shard_.info().wireBytes);
  const double seconds = std::exchange(since_, Stopwatch()).seconds();
  const StepReport report{ended_,
                          loss,
                          stats.gradientNorm,
                          rate(),
                          seconds,
                          stats.exposedSeconds,
                          static_cast<double>(moved) / static_cast<double>(shard_.info().elements),
                          model_.waited() - std::exchange(waited_, model_.waited()),
                          static_cast<Stop>(static_cast<int>(mostOfLast(shared_, mine_.size()))),
                          scale,
                          lossScale_ ? lossScale_->state().skippedSteps : 0,
                          overflow,
                          passMeter_.take()};
  ++ended_;
  underWay_ = false;
  return report;
}

// All ranks have the same statistics, and so the same scale. A gradient that overflows in fp16 has cost
// the step, and is told; where no smaller scale would help it is an error.
std::string Trainer::settleScale(const weftStepStats_t& stats) {
  if (stats.nonFinite == 0 && std::isfinite(stats.gradientNorm)) {
    if (lossScale_) lossScale_->stepped();
    return {};
  }
  const std::string where = whereNotFinite(stats);
  if (lossScale_ && stats.skipped != 0 && lossScale_->overflowed()) return where;
  throw SharedFailure(
      Exit::kData,
      fmt::format("the gradient of {} is not finite at step {}{}: try a smaller --lr or a longer "
                  "--warmup",
                  where, ended_, lossScale_ ? ", whatever the loss scale" : ""));
}

std::string Trainer::whereNotFinite(const weftStepStats_t& stats) const {
  std::string who = "some parameter";
  if (stats.badPart >= 0) {
    const ModelPart part = groups_.part().at(stats.badPart);
    who = parametersOf(options_.shape, part).list.at(static_cast<size_t>(stats.badParam)).name;
  }
  if (stats.badRank >= 0)  // none, where a sum overflowed
    who += fmt::format(" on rank {}", groups_.rankOf(stats.badPart, stats.badRank));
  return who;
}

weftStepArgs_t Trainer::stepArgs(bool boundary) const {
  weftStepArgs_t args = WEFT_STEP_ARGS_INITIALIZER;
  args.boundary = boundary;
  args.learningRate = rate();
  args.weightDecay = options_.weightDecay;
  args.clipNorm = options_.clip;
  args.lossScale = lossScale();
  args.microSteps = static_cast<int>(options_.accumulate / together_);
  args.divisor = static_cast<double>(dataRanks()) * static_cast<double>(options_.accumulate);
  return args;
}

double Trainer::rate() const { return learningRate(rateScheduleOf(options_), ended_); }

double Trainer::forward(const Turn& turn) {
  const TurnTimer timer(passMeter_, model_, turn);
  return model_.forward(held_.of(turn.micro, turn.own), turn.own);
}

void Trainer::passes(double firstLoss, const std::function<Stop()>& wantsStop) {
  mine_[0] = firstLoss;
  for (size_t i = 1; i < turns_.size(); ++i) {
    const Turn& turn = turns_[i];
    if (turn.pass == Pass::kForward) {
      mine_[static_cast<size_t>(turn.micro)] = forward(turn);  // the loss is what the last run says
      continue;
    }
    if (i + 1 == turns_.size()) {  // the losses travel under backward as well
      mine_.back() = static_cast<double>(wantsStop());
      all_.allGather(mine_.data(), shared_.data(), mine_.size(), {stream_});
    }
    backward(turn);
  }
}

// A micro-step of the shard is `together_` micro-batches, from the first's way through the last run to the last's
// through the first.
void Trainer::backward(const Turn& turn) {
  const TurnTimer timer(passMeter_, model_, turn);
  const int64_t place = turn.micro % together_;
  const bool isLastStep = turn.micro - place + together_ == options_.accumulate;
  if (place == 0 && turn.own + 1 == groups_.part().stage.virtuals) {
    const weftStepArgs_t args = stepArgs(isLastStep);
    check(weftStepBegin(shard_, &args));
  }
  isComplete_ = place + 1 == together_;
  model_.backward(lossScale(), turn.own);
  if (!isComplete_ || turn.own > 0) return;
  if (tied_) {
    tied_->passed(isLastStep);
    check(weftGradReady(shard_, 0));
  }
  for (const size_t parameter : late_) check(weftGradReady(shard_, parameter));
  late_.clear();
  check(weftGradDone(shard_));
}

void Trainer::takeGradient(size_t parameter) {
  if (!isComplete_ || (tied_ && parameter == 0)) return;  // that not before backward has ended
  if (options_.noOverlap)
    late_.push_back(parameter);
  else
    check(weftGradReady(shard_, parameter));
}

double Trainer::meanLoss() const {
  const size_t ranks = shared_.size() / mine_.size(), losses = mine_.size() - 1;
  for (size_t i = 0; i < ranks * losses; ++i) {
    const double loss = shared_[i / losses * mine_.size() + i % losses];
    if (std::isfinite(loss)) continue;
    throw SharedFailure(Exit::kData,
                        fmt::format("the loss of rank {} is {} at step {}: try a smaller "
                                    "--lr or a longer --warmup",
                                    i / losses, loss, ended_));
  }
  return meanInOrder(shared_, mine_.size());
}

}  // namespace weft::train
