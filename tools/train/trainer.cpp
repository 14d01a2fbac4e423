// SPDX-License-Identifier: Apache-2.0
#include "tools/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "tools/train/agreement.h"
#include "tools/train/fingerprint.h"
#include "tools/train/learning_rate.h"
#include "tools/train/weights/initial_weights.h"

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

bool hasMasters(const Options& options) {
  return options.params == Params::kBfloat16 || options.params == Params::kFloat16;
}

size_t elementBytes(const Options& options) {
  return options.params == Params::kFloat32 ? sizeof(float) : sizeof(uint16_t);
}

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

// In fp32, one parameter after the other: this rank's part of those of a file, or of drawn ones.
void Trainer::visitInitialWeights(const std::function<void(size_t, const float*)>& take) const {
  const auto takePart = [&](size_t i, const float* whole) {
    const Parameter& of = whole_.list[own_.inWhole[i]];
    take(i, partOf(of, groups_.part().tensor, whole).data());
  };
  if (options_.initFrom.empty()) return model_.draw(options_.seed, takePart);
  const InitialWeights stored(options_.initFrom, options_.shape);
  const auto isStored = [&](size_t i) { return stored.has(own_.inWhole[i]); };
  std::map<size_t, std::vector<float>> drawn;  // a new head
  model_.draw(options_.seed, [&](size_t i, const float* whole) {
    if (!isStored(i)) drawn[i].assign(whole, whole + whole_.list[own_.inWhole[i]].size());
  });
  for (size_t i = 0; i < own_.list.size(); ++i)
    takePart(i, isStored(i) ? stored.of(own_.inWhole[i]).data() : drawn[i].data());
}

void Trainer::shareInitialWeights() {
  if (groups_.data().rank() == 0)
    visitInitialWeights([this](size_t i, const float* weights) { model_.set(i, weights); });
  check(weftShardStart(shard_, 0));
  weightsFingerprint("initial weights");
  if (hasMasters(options_)) shareFp32Weights();
}

// What the optimizer steps begins with the draw itself, not with what its rounding has left.
void Trainer::shareFp32Weights() {
  std::vector<float> weights;
  const auto share = [&](size_t parameter, const float* drawn) {
    weights.resize(own_.list[parameter].size());
    groups_.data().broadcast(drawn, weights.data(), weights.size());
    check(weftShardSetWeights(shard_, parameter, weights.data()));
  };
  if (groups_.data().rank() == 0) return visitInitialWeights(share);
  for (size_t i = 0; i < own_.list.size(); ++i) share(i, nullptr);
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
  return options_.noOverlap ? finish() : before;
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
                          agreedStop(),
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

// Micro-batch m of the step is samples m * R .. (m + 1) * R of R = ranks * batch, and each rank has
// its run of `batch` among them, so any split of the same global batch gives the same gradients.
uint64_t Trainer::firstSample(int64_t micro) const {
  const auto rank = static_cast<uint64_t>(groups_.data().rank());
  return microBatch(static_cast<uint64_t>(micro), rank) * static_cast<uint64_t>(options_.batch);
}

// Which of the micro-batches of all ranks a rank's m-th is: in reproducible runs as shard.h asks.
uint64_t Trainer::microBatch(uint64_t m, uint64_t rank) const {
  const auto ranks = static_cast<uint64_t>(dataRanks()),
             together = static_cast<uint64_t>(together_);
  const uint64_t ofRank = static_cast<uint64_t>(options_.accumulate) / together;
  const uint64_t run = options_.reproducible ? together << std::countr_zero(ofRank) : 1;
  return (m / run * ranks + rank) * run + m % run;
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

// Micro-batch i of this rank: of steps 0 to `steps` - 1, over and over.
std::function<Batch(uint64_t)> Trainer::batchesOf(const BatchSource& source, uint64_t steps) const {
  std::vector<uint64_t> first;
  for (int64_t micro = 0; micro < options_.accumulate; ++micro) first.push_back(firstSample(micro));
  return [&source, steps, first, count = static_cast<size_t>(options_.batch)](uint64_t i) {
    const uint64_t step = i / first.size() % steps, start = first[i % first.size()];
    Batch batch = source.batch(step, start, count);
    batch.step = step;
    batch.first = start;
    return batch;
  };
}

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

// In the order of the micro-batches, whoever had them: each rank's losses begin `stride` further on.
// The last stage has them, and all of a tensor group the same.
std::vector<const double*> Trainer::microsInOrder(const std::vector<double>& byRank, size_t stride,
                                                  size_t ofMicro) const {
  const auto micros = static_cast<size_t>(options_.accumulate);
  std::vector<const double*> inOrder(static_cast<size_t>(dataRanks()) * micros);
  for (size_t i = 0; i < inOrder.size(); ++i) {
    const auto batch = static_cast<int64_t>(i / micros);
    const auto rank = static_cast<size_t>(groups_.rankOf(groups_.part().count() - 1, batch));
    inOrder[microBatch(i % micros, i / micros)] = &byRank[rank * stride + i % micros * ofMicro];
  }
  return inOrder;
}

double Trainer::meanInOrder(const std::vector<double>& byRank, size_t stride) const {
  const std::vector<const double*> inOrder = microsInOrder(byRank, stride, 1);
  double sum = 0;
  for (const double* const each : inOrder) sum += *each;
  return sum / static_cast<double>(inOrder.size());
}

Stop Trainer::agreedStop() const {
  double most = 0;
  for (size_t i = mine_.size() - 1; i < shared_.size(); i += mine_.size())
    most = std::max(most, shared_[i]);
  return static_cast<Stop>(static_cast<int>(most));
}

uint64_t Trainer::fingerprintOf(size_t parameter) const {
  const auto* bytes = static_cast<const uint8_t*>(shard_.memoryOf(parameter).weights);
  return fingerprint(std::span(bytes, own_.list[parameter].size() * elementBytes(options_)));
}

uint64_t Trainer::fingerprintOfOwn(bool copiesAlone) {
  uint64_t all = 0;
  for (size_t i = 0; i < own_.list.size(); ++i) {
    if (copiesAlone && own_.list[i].split != Split{}) continue;
    const uint64_t words[2] = {all, fingerprintOf(i)};
    all = fingerprint(std::span<const uint64_t>(words));
  }
  return all;
}

uint64_t Trainer::weightsFingerprint(const std::string& which) {
  shard_.acquireAll();
  const uint64_t own = fingerprintOfOwn(false);
  agree(all_, "copy of the " + which, own, Exit::kInternal, groups_.firstOfPart());
  if (groups_.parts() == nullptr) return own;
  agreeOnCopies(which);
  std::vector<uint64_t> parts(static_cast<size_t>(groups_.part().count()));
  groups_.parts()->allGather(&own, parts.data(), 1);
  return fingerprint(std::span<const uint64_t>(parts));
}

// What is in several parts of the model, and was stepped in each.
void Trainer::agreeOnCopies(const std::string& which) {
  agree(all_, fmt::format("copy of the norms and biases among the {}", which),
        fingerprintOfOwn(true), Exit::kInternal, groups_.firstOfStage());
  if (whole_.firstLayer != FirstLayer::kIsFirstAndLast || groups_.part().stage.count == 1) return;
  const uint64_t tied = tied_ ? fingerprintOf(0) : 0;
  agree(all_, fmt::format("copy of the tied embedding among the {}", which), tied, Exit::kInternal,
        groups_.firstOfPartOrEnd());
}

}  // namespace weft::train
