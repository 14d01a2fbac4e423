// SPDX-License-Identifier: Apache-2.0
#include "shard/stepper.h"

#include <algorithm>

namespace weft::shard {

// Of another thread, with what it found.
struct Stepper::Beside {
  explicit Beside(const ShardState& state) : stepper(state) {}
  Stepper stepper;
  GradientReport report;
};

Stepper::Stepper(const ShardState& state) : state_(state) {}
Stepper::~Stepper() = default;

void Stepper::begin(const Job& job) {
  job_ = job;
  if (!job.folds) return;
  fold_.begin({.layout = &state_.layout(),
               .bucket = job.bucket,
               .offset = job.own.offset,
               .type = state_.config().wireType,
               .final = true,
               .report = job.report});
}

void Stepper::end() {
  beside_.end([this](const Beside& one) {
    if (job_.folds) job_.report->add(one.report);
  });
}

plan::Epilogue* Stepper::ofThread(std::uint32_t k) {
  if (k == 0) return this;
  if (state_.config().optimizer.kind == Optimizer::Custom) return nullptr;
  const auto begin = [this](Beside& one) {
    Job job = job_;
    job.report = &(one.report = {});
    one.stepper.begin(job);
  };
  return &beside_.get(k, begin, state_).stepper;
}

// Weights and state, there and back.
double Stepper::bytesBeside() const {
  const OptimizerSettings& optimizer = state_.config().optimizer;
  const bool steps = optimizer.kind != Optimizer::Lamb;  // its state has been
  return 2.0 * sizeof(float) * static_cast<double>(1 + (steps ? stateNames(optimizer).size() : 0));
}

void Stepper::run(void* result, std::span<const void* const> addends, std::uint64_t first,
                  std::size_t count) {
  float* gradients = nullptr;
  if (job_.folds) {
    reduced_.resize(std::max(reduced_.size(), count));
    gradients = reduced_.data();
    fold_.fold(gradients, addends, first, count);
  } else {
    gradients = state_.finalSums(job_.bucket) + first;
  }
  const auto step = [&](const StateRun& run) {
    const Status status =
        stepRun(state_.config().optimizer, job_.settings, run, job_.trust[run.parameter]);
    if (failure_.status.ok() && !status.ok()) failure_ = {status, run.parameter};
  };
  state_.visitRuns(job_.bucket, job_.own.offset + first, count, gradients,
                   static_cast<std::byte*>(result), step);
}

// In one pass, from gradients to the parameters of all ranks.
bool Stepper::runToAll(std::span<void* const> results, std::span<const void* const> addends,
                       std::uint64_t first, std::size_t count) {
  if (state_.config().optimizer.kind != Optimizer::AdamW || state_.aliasesWeights()) return false;
  state_.visitRuns(
      job_.bucket, job_.own.offset + first, count, nullptr, nullptr, [&](const StateRun& run) {
        targets_.clear();
        for (void* result : results)
          targets_.push_back(static_cast<std::byte*>(result) +
                             run.at * reduce::sizeOf(run.slice.outType));
        addends_.clear();
        if (!job_.folds)
          addends_ = {{state_.finalSums(job_.bucket) + first + run.at, reduce::DType::F32}};
        const reduce::DType wire = state_.config().wireType;
        for (std::size_t i = 0; job_.folds && i < addends.size(); ++i)
          addends_.push_back(reduce::Addend{addends[i], wire}.from(run.at));
        stepFused(run, first + run.at);
      });
  return true;
}

// The run whose gradients and results are `addends_` and `targets_`.
void Stepper::stepFused(const StateRun& run, std::uint64_t first) {
  reduce::GradientStats stats;
  reduce::foldAndStepAdamW(adamWOf(state_.config().optimizer, job_.settings, run),
                           {.first = run.slice.first,
                            .n = run.slice.n,
                            .weights = static_cast<float*>(run.slice.weights),
                            .m = run.state[0],
                            .v = run.state[1],
                            .gradients = addends_,
                            .out = targets_,
                            .outType = run.slice.outType,
                            .rounding = run.slice.rounding},
                           job_.folds ? &stats : nullptr);
  if (!job_.folds) return;
  if (stats.nonFinite != 0)
    reportAnew(first, run.slice.n);
  else if (state_.layout().counts(run.parameter))
    job_.report->squares.add(stats.squares);
}

// With the epilogue, which also finds whose gradients are not finite.
void Stepper::reportAnew(std::uint64_t first, std::size_t count) {
  reduced_.resize(std::max(reduced_.size(), kFoldTile));
  for (std::size_t at = 0; at < count; at += kFoldTile) {
    inputs_.clear();
    for (const reduce::Addend& a : addends_) inputs_.push_back(a.from(at).data);
    fold_.fold(reduced_.data(), inputs_, first + at, std::min(kFoldTile, count - at));
  }
}

}  // namespace weft::shard
