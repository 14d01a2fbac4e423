// SPDX-License-Identifier: Apache-2.0
#include "shard/updater.h"

#include <algorithm>

namespace weft::shard {
Updater::Updater(const Mesh& mesh, ShardState& state)
    : mesh_(mesh), state_(state), ratios_(state.layout().parameters().size(), 1.0) {}

void Updater::begin(const StepSettings& settings, int timeoutMs) {
  settings_ = settings;
  timeoutMs_ = timeoutMs;
  failure_ = {};
}

void Updater::run(void* result, std::span<const void* const> addends, std::uint64_t first,
                  std::size_t count) {
  float* gradients = nullptr;
  if (folds_) {
    reduced_.resize(std::max(reduced_.size(), count));
    gradients = reduced_.data();
    fold_.fold(gradients, addends, first, count);
  } else {
    gradients = state_.finalSums(bucket_) + first;
  }
  const auto step = [&](const StateRun& run) {
    const Status status =
        stepRun(state_.config().optimizer, settings_, run, ratios_[run.parameter]);
    if (failure_.status.ok() && !status.ok()) failure_ = {status, run.parameter};
  };
  state_.visitRuns(bucket_, own_.offset + first, count, gradients, static_cast<std::byte*>(result),
                   step);
}

// In one pass, from gradients to the parameters of all ranks.
bool Updater::runToAll(std::span<void* const> results, std::span<const void* const> addends,
                       std::uint64_t first, std::size_t count) {
  if (state_.config().optimizer.kind != Optimizer::AdamW || state_.aliasesWeights()) return false;
  state_.visitRuns(bucket_, own_.offset + first, count, nullptr, nullptr, [&](const StateRun& run) {
    targets_.clear();
    for (void* result : results)
      targets_.push_back(static_cast<std::byte*>(result) +
                         run.at * reduce::sizeOf(run.slice.outType));
    addends_.clear();
    if (!folds_) addends_ = {{state_.finalSums(bucket_) + first + run.at, reduce::DType::F32}};
    const reduce::DType wire = state_.config().wireType;
    for (std::size_t i = 0; folds_ && i < addends.size(); ++i)
      addends_.push_back(reduce::Addend{addends[i], wire}.from(run.at));
    stepFused(run, first + run.at);
  });
  return true;
}

// The run whose gradients and results are `addends_` and `targets_`.
void Updater::stepFused(const StateRun& run, std::uint64_t first) {
  reduce::GradientStats stats;
  reduce::foldAndStepAdamW(adamWOf(state_.config().optimizer, settings_, run),
                           {.first = run.slice.first,
                            .n = run.slice.n,
                            .weights = static_cast<float*>(run.slice.weights),
                            .m = run.state[0],
                            .v = run.state[1],
                            .gradients = addends_,
                            .out = targets_,
                            .outType = run.slice.outType,
                            .rounding = run.slice.rounding},
                           folds_ ? &stats : nullptr);
  if (!folds_) return;
  if (stats.nonFinite == 0)
    report_->squares.add(stats.squares);
  else
    reportAnew(first, run.slice.n);
}

// With the epilogue, which also finds whose gradients are not finite.
void Updater::reportAnew(std::uint64_t first, std::size_t count) {
  reduced_.resize(std::max(reduced_.size(), kFoldTile));
  for (std::size_t at = 0; at < count; at += kFoldTile) {
    inputs_.clear();
    for (const reduce::Addend& a : addends_) inputs_.push_back(a.from(at).data);
    fold_.fold(reduced_.data(), inputs_, first + at, std::min(kFoldTile, count - at));
  }
}

void Updater::aim(std::uint32_t bucket) {
  bucket_ = bucket;
  own_ = state_.part(bucket, Level::State);
}

std::byte* Updater::keptAt(const ShardState::Range& part) const {
  const ShardState::Range home = state_.part(bucket_, Level::Param);
  return state_.keptParameters(bucket_) +
         (part.offset - home.offset) * reduce::sizeOf(state_.config().paramType);
}

Status Updater::publish(std::uint32_t bucket) {
  aim(bucket);
  state_.roundWeights(bucket, keptAt(own_));
  const ShardState::Range half = state_.part(bucket, Level::Grad);
  if (mesh_.size(Level::State) > 1)
    WEFT_TRY(gather(Level::State, keptAt(half), own_.elements, false));
  if (mesh_.size(Level::Grad) == 1) return {};
  return gather(Level::Grad, state_.keptParameters(bucket), half.elements, false);
}

Status Updater::update(std::uint32_t bucket) {
  aim(bucket);
  const ShardState::Range half = state_.part(bucket, Level::Grad);
  std::byte* const all = state_.keptParameters(bucket);
  std::byte* const mine = keptAt(half);
  const bool state = mesh_.size(Level::State) > 1, grad = mesh_.size(Level::Grad) > 1;
  if (state) WEFT_TRY(gather(Level::State, mine, own_.elements, true));
  if (grad) WEFT_TRY(gather(Level::Grad, all, half.elements, !state));
  if (!state && !grad) stepAlone(mine);
  return {};
}

// An all-gather in place of blocks that are stepped on the way, or have been.
Status Updater::gather(Level level, std::byte* to, std::uint64_t elements, bool steps) {
  const reduce::DType type = state_.config().paramType;
  comm::Communicator& group = *mesh_.group(level);
  const std::byte* const mine = to + mesh_.position(level) * elements * reduce::sizeOf(type);
  if (!steps) return group.allGather(mine, to, elements, type, timeoutMs_, "parameters");
  folds_ = false;
  const plan::Call call = epilogueCall(schedule::Collective::AllGather, type, elements);
  return group.run(call, nullptr, to, *this, timeoutMs_, "parameters");
}

void Updater::stepAlone(std::byte* result) {
  const std::size_t size = reduce::sizeOf(state_.config().paramType);
  folds_ = false;
  for (std::uint64_t at = 0; at < own_.elements; at += kFoldTile)
    run(result + at * size, {}, at, std::min<std::uint64_t>(kFoldTile, own_.elements - at));
}

Status Updater::step(std::uint32_t bucket, std::byte* wire, GradientReport* report) {
  aim(bucket);
  fold_.begin({.layout = &state_.layout(),
               .bucket = bucket,
               .offset = own_.offset,
               .type = state_.config().wireType,
               .final = true,
               .report = report});
  report_ = report;
  folds_ = true;
  const plan::Call call =
      epilogueCall(schedule::Collective::AllReduce, state_.config().wireType, own_.elements);
  return mesh_.group(Level::State)
      ->run(call, wire, state_.parameters(bucket), *this, timeoutMs_, "step");
}

// The first phase runs over all buckets before the second: the norms are of whole parameters.
Status Updater::prepare() {
  std::vector<TrustSums> sums(ratios_.size());
  for (std::uint32_t b = 0; b < state_.buckets(); ++b) {
    const auto first = [&](const StateRun& run) {
      prepareLamb(state_.config().optimizer, settings_, run, &sums[run.parameter]);
    };
    state_.visitOwn(b, first, state_.finalSums(b));
  }
  if (mesh_.ranks() > 1) WEFT_TRY(shareTrust(&sums));
  for (std::size_t p = 0; p < sums.size(); ++p) {
    const bool decays = !state_.layout().parameters()[p].noDecay;
    ratios_[p] = trustRatio(state_.config().optimizer, sums[p], decays ? state_.weightDecay : 0);
  }
  return {};
}

// Replicas have the same sums: one of them counts.
Status Updater::shareTrust(std::vector<TrustSums>* sums) {
  if (mesh_.position(Level::Replica) != 0) std::ranges::fill(*sums, TrustSums{});
  static_assert(sizeof(TrustSums) == 2 * sizeof(reduce::ExactSum::Words));
  plan::Call call;
  call.collective = schedule::Collective::AllReduce;
  call.op = reduce::RedOp::Sum;
  call.type = reduce::DType::I64;
  call.count = sums->size() * 2 * reduce::ExactSum::kWords;
  return mesh_.world()->run(call, sums->data(), sums->data(), nullptr, timeoutMs_, "trust ratios");
}

}  // namespace weft::shard
