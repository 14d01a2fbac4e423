// SPDX-License-Identifier: Apache-2.0
#include "tools/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

#include "perf/common/report_file.h"
#include "tools/train/agreement.h"
#include "tools/train/checkpoint_folder.h"
#include "tools/train/fingerprint.h"
#include "tools/train/learning_rate.h"
#include "tools/train/position.h"
#include "tools/train/weights/export.h"
#include "tools/train/weights/initial_weights.h"

namespace weft::train {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

size_t samplesPerStep(const Options& options, const Communicator& team) {
  return static_cast<size_t>(options.batch * options.accumulate * team.size());
}

Element elementOf(const Options& options) {
  return options.params == Params::kFloat32 ? Element::kFloat32 : Element::kBfloat16;
}

size_t elementBytes(const Options& options) {
  return options.params == Params::kFloat32 ? sizeof(float) : sizeof(uint16_t);
}

// The same on all ranks.
struct DamagedCheckpoint : SharedFailure {
  explicit DamagedCheckpoint(const std::string& why) : SharedFailure(Exit::kData, why) {}
};

// A file that goes at the end of a scope.
struct Removed {
  const std::string& file;
  ~Removed() { std::remove(file.c_str()); }
};

}  // namespace

Trainer::Trainer(const Options& options, Communicator& team, const TrainingData& data)
    : options_(options),
      team_(team),
      batches_(data.training(samplesPerStep(options, team))),
      validation_(options.evalEvery > 0 ? data.validation(samplesPerStep(options, team)) : nullptr),
      specification_(parametersOf(options.shape).list),
      shard_(options, team, parametersOf(options.shape)),
      model_(options.shape, options.bf16 ? Compute::kAutocastBfloat16 : Compute::kAsWeights,
             elementOf(options), Element::kFloat32, shard_.memory()),
      mine_(static_cast<size_t>(options.accumulate) + 1),
      shared_(mine_.size() * static_cast<size_t>(team.size())),
      data_(data.fingerprint()),
      ahead_(batchesOf(*batches_, std::numeric_limits<uint64_t>::max())) {
  if (validation_)
    validationAhead_.emplace(batchesOf(*validation_, static_cast<uint64_t>(options.evalBatches)));
  const std::string settings = commonSettings(options);
  agree(team, "command line", fingerprint(std::span<const char>(settings)));
  agree(team, "training text", data_);
  agree(team, "vocabulary", batches_->vocabularyFingerprint());
  shareInitialWeights();
  model_.onGradient([this](size_t parameter) {
    if (options_.noOverlap)
      late_.push_back(parameter);
    else
      check(weftGradReady(shard_, parameter));
  });
  gatherLayersInTime();
}

// In fp32, one parameter after the other: those of a file, or drawn ones.
void Trainer::visitInitialWeights(const std::function<void(size_t, const float*)>& take) const {
  if (options_.initFrom.empty()) return model_.draw(options_.seed, take);
  const InitialWeights stored(options_.initFrom, options_.shape);
  for (size_t i = 0; i < specification_.size(); ++i) take(i, stored.of(i).data());
}

void Trainer::shareInitialWeights() {
  if (team_.rank() == 0)
    visitInitialWeights([this](size_t i, const float* weights) { model_.set(i, weights); });
  check(weftShardStart(shard_, 0));
  agree(team_, "copy of the initial weights", weightsFingerprint(), Exit::kInternal);
  if (options_.params == Params::kBfloat16) shareFp32Weights();
}

// What the optimizer steps begins with the draw itself, not with what its rounding has left.
void Trainer::shareFp32Weights() {
  std::vector<float> weights;
  const auto share = [&](size_t parameter, const float* drawn) {
    weights.resize(specification_[parameter].size());
    team_.broadcast(drawn, weights.data(), weights.size());
    check(weftShardSetWeights(shard_, parameter, weights.data()));
  };
  if (team_.rank() == 0) return visitInitialWeights(share);
  for (size_t i = 0; i < specification_.size(); ++i) share(i, nullptr);
}

// Forward begins when the first layer's weights are there; sharded ones are gathered while the
// layer before runs.
void Trainer::gatherLayersInTime() {
  model_.onLayer(
      {.before = [this](size_t first, size_t, Pass pass) { shard_.acquire(first, pass); },
       .after = [this](size_t first, size_t, Pass pass) { shard_.release(first, pass); }});
}

std::optional<StepReport> Trainer::step(const std::function<Stop()>& wantsStop) {
  if (!underWay_) since_ = Clock::now();
  const double firstLoss =
      model_.forward(ahead_.take());  // while the step before is still going on
  const std::optional<StepReport> before = finish();
  if (before && before->stop != Stop::kNo) return before;
  passes(firstLoss, wantsStop);
  underWay_ = true;
  return options_.noOverlap ? finish() : before;
}

std::optional<StepReport> Trainer::finish() {
  if (!underWay_) return {};
  weftStepStats_t stats{};
  stats.size = sizeof(stats);
  check(weftStepWait(shard_, &stats));
  check(weftStreamSynchronize(stream_), team_);

  const double loss = meanLoss();
  throwIfNotFinite(stats);
  const uint64_t moved = shard_.info().wireBytes - std::exchange(moved_, shard_.info().wireBytes);
  const double seconds = secondsSince(std::exchange(since_, Clock::now()));
  const StepReport report{ended_,
                          loss,
                          stats.gradientNorm,
                          rate(),
                          seconds,
                          stats.exposedSeconds,
                          static_cast<double>(moved) / static_cast<double>(parameters()),
                          agreedStop()};
  ++ended_;
  underWay_ = false;
  return report;
}

void Trainer::throwIfNotFinite(const weftStepStats_t& stats) const {
  if (stats.nonFinite == 0 && std::isfinite(stats.gradientNorm)) return;
  const std::string parameter = stats.badParam < 0
                                    ? "some parameter"
                                    : specification_[static_cast<size_t>(stats.badParam)].name;
  throw SharedFailure(
      Exit::kData,
      fmt::format("the gradient of {} on rank {} is not finite at step {}: try a smaller --lr or "
                  "a longer --warmup",
                  parameter, stats.badRank, ended_));
}

// Micro-batch m of the step is samples m * R .. (m + 1) * R of R = ranks * batch, and each rank has
// its run of `batch` among them, so any split of the same global batch gives the same gradients.
uint64_t Trainer::firstSample(int64_t micro) const {
  return microBatch(static_cast<uint64_t>(micro), static_cast<uint64_t>(team_.rank())) *
         static_cast<uint64_t>(options_.batch);
}

// Which of the micro-batches of all ranks a rank's m-th is: in reproducible runs as shard.h asks.
uint64_t Trainer::microBatch(uint64_t m, uint64_t rank) const {
  const auto ranks = static_cast<uint64_t>(team_.size());
  const uint64_t run = options_.reproducible
                           ? uint64_t{1}
                                 << std::countr_zero(static_cast<uint64_t>(options_.accumulate))
                           : 1;
  return (m / run * ranks + rank) * run + m % run;
}

weftStepArgs_t Trainer::stepArgs(bool boundary) const {
  weftStepArgs_t args = WEFT_STEP_ARGS_INITIALIZER;
  args.boundary = boundary;
  args.learningRate = rate();
  args.weightDecay = options_.weightDecay;
  args.clipNorm = options_.clip;
  args.microSteps = static_cast<int>(options_.accumulate);
  args.divisor = static_cast<double>(team_.size()) * static_cast<double>(options_.accumulate);
  return args;
}

double Trainer::rate() const { return learningRate(rateScheduleOf(options_), ended_); }

// Micro-batch i of this rank: of steps 0 to `steps` - 1, over and over.
std::function<Batch(uint64_t)> Trainer::batchesOf(const BatchSource& source, uint64_t steps) const {
  std::vector<uint64_t> first;
  for (int64_t micro = 0; micro < options_.accumulate; ++micro) first.push_back(firstSample(micro));
  return [&source, steps, first, count = static_cast<size_t>(options_.batch)](uint64_t i) {
    return source.batch(i / first.size() % steps, first[i % first.size()], count);
  };
}

void Trainer::passes(double firstLoss, const std::function<Stop()>& wantsStop) {
  for (int64_t micro = 0; micro < options_.accumulate; ++micro) {
    const bool last = micro + 1 == options_.accumulate;
    mine_[static_cast<size_t>(micro)] = micro == 0 ? firstLoss : model_.forward(ahead_.take());
    if (last) {  // the losses travel under backward as well
      mine_.back() = static_cast<double>(wantsStop());
      team_.allGather(mine_.data(), shared_.data(), mine_.size(), {stream_});
    }
    const weftStepArgs_t args = stepArgs(last);
    check(weftStepBegin(shard_, &args));
    model_.backward(1.0);
    for (const size_t parameter : late_) check(weftGradReady(shard_, parameter));
    late_.clear();
    check(weftGradDone(shard_));
  }
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
  return sumInOrder(shared_, mine_.size(), losses) / static_cast<double>(ranks * losses);
}

// In the order of the micro-batches, whoever had them: each rank's losses begin `stride` further on.
double Trainer::sumInOrder(const std::vector<double>& byRank, size_t stride, size_t losses) const {
  std::vector<double> inOrder(byRank.size() / stride * losses);
  for (size_t i = 0; i < inOrder.size(); ++i)
    inOrder[microBatch(i % losses, i / losses)] = byRank[i / losses * stride + i % losses];
  return std::accumulate(inOrder.begin(), inOrder.end(), 0.0);
}

double Trainer::evaluate() {
  const auto micros = static_cast<size_t>(options_.accumulate);
  std::vector<double> mine(micros), all(micros * static_cast<size_t>(team_.size()));
  double sum = 0;
  for (int64_t i = 0; i < options_.evalBatches; ++i) {
    for (size_t m = 0; m < micros; ++m) mine[m] = model_.evaluate(validationAhead_->take());
    team_.allGather(mine.data(), all.data(), mine.size());
    sum += sumInOrder(all, micros, micros) / static_cast<double>(all.size());
  }
  moved_ = shard_.info().wireBytes;  // not the next step's
  return sum / static_cast<double>(options_.evalBatches);
}

Stop Trainer::agreedStop() const {
  double most = 0;
  for (size_t i = mine_.size() - 1; i < shared_.size(); i += mine_.size())
    most = std::max(most, shared_[i]);
  return static_cast<Stop>(static_cast<int>(most));
}

void Trainer::save(const std::string& folder, bool wait) {
  const bool isThere = std::exchange(saved_, ended_) == ended_;
  try {
    if (!isThere)
      check(weftShardSave(shard_, folder.c_str(), textOf(position()).c_str(), wait ? 0 : 1));
    if (isThere && wait) check(weftShardSaveWait(shard_));
  } catch (const Error& error) {
    if (error.result() != weftSystemError) throw;
    throw SharedFailure(Exit::kCannotWrite, error.what());
  }
}

std::string Trainer::load(const std::string& checkpoint, bool state) {
  std::array<char, 4096> meta{};
  try {
    const auto load = state ? weftShardLoad : weftShardLoadWeights;
    check(load(shard_, checkpoint.c_str(), meta.data(), meta.size()));
  } catch (const Error& error) {
    if (error.result() == weftSystemError) throw DamagedCheckpoint(error.what());
    if (error.result() != weftInvalidArgument) throw;
    throw SharedFailure(Exit::kData, error.what());
  }
  return meta.data();
}

// The last one, or if that is damaged the one before: some steps are made again, to the same end.
std::string Trainer::loadLastGood(const std::string& folder, bool state) {
  try {
    return load(folder, state);
  } catch (const DamagedCheckpoint& damaged) {
    std::array<char, 4096> before{};
    if (team_.rank() == 0) checkpointBeforeLast(folder).copy(before.data(), before.size() - 1);
    team_.broadcast(before.data(), before.data(), before.size());
    if (before[0] == 0) throw;
    const std::string meta = load(before.data(), state);
    onRankZero(team_, [&] {
      const bool isOurs = isSameFolder(folder, options_.save) && setLastAside(folder);
      fmt::print(stderr, "weft-train: {}; going on from the one before, {}{}\n", damaged.what(),
                 before.data(), isOurs ? "; the damaged one is kept with the ending .damaged" : "");
    });
    return meta;
  }
}

Position Trainer::position() const {
  return {ended_, ended_ + dataAhead_, globalBatch(), fmt::format("{:016x}", data_)};
}

void Trainer::resume(const std::string& folder) {
  goOn(folder, {.state = true, .schedule = true, .data = true});
  if (isSameFolder(folder, options_.save)) saved_ = ended_;
}

void Trainer::goOn(const std::string& folder, const Kept& kept) {
  const Position stored = positionOf(loadLastGood(folder, kept.state), folder);
  if (kept.data) checkPosition(stored, position(), folder);
  ended_ = kept.schedule ? stored.step : 0;
  dataAhead_ = (kept.data ? stored.position : 0) - ended_;
  ahead_.startAt(static_cast<uint64_t>((ended_ + dataAhead_) * options_.accumulate));
}

// Rank 0 writes it, of what all have written aside under the names that the shard knows.
void Trainer::exportTo(const std::string& file) {
  const std::string target = team_.rank() == 0 ? tools::ReportFile(file).target() : file,
                    aside = target + ".weft";
  check(weftShardExport(shard_, aside.c_str(), 1));
  onRankZero(team_, [&] {
    const Removed afterwards{aside};
    exportWeights(aside, target, options_.shape);
  });
}

size_t Trainer::parameters() const {
  size_t sum = 0;
  for (const Parameter& parameter : specification_) sum += parameter.size();
  return sum;
}

uint64_t Trainer::weightsFingerprint() {
  shard_.acquireAll();
  uint64_t all = 0;
  const std::vector<ParameterMemory> memory = shard_.memory();
  for (size_t i = 0; i < memory.size(); ++i) {
    const auto* bytes = static_cast<const uint8_t*>(memory[i].weights);
    const uint64_t words[2] = {
        all, fingerprint(std::span(bytes, specification_[i].size() * elementBytes(options_)))};
    all = fingerprint(std::span<const uint64_t>(words));
  }
  return all;
}

}  // namespace weft::train
