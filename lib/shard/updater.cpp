// SPDX-License-Identifier: Apache-2.0
#include "shard/updater.h"

#include <algorithm>

namespace weft {
namespace {

constexpr std::size_t kTile = 16 << 10;  // elements at once of what needs no call

}  // namespace

Updater::Updater(const Mesh& mesh, ShardState& state)
    : mesh_(mesh),
      state_(state),
      kernel_(*this),
      ratios_(state.layout().parameters().size(), 1.0) {}

void Updater::begin(const StepSettings& settings, int timeoutMs) {
  settings_ = settings;
  timeoutMs_ = timeoutMs;
  failure_ = {};
}

void Updater::StepKernel::run(void* result, std::span<const void* const> addends,
                              std::uint64_t first, std::size_t count) {
  auto* const to = static_cast<std::byte*>(result);
  if (!folds) {
    return owner_.stepTile(first, count, owner_.state_.finalSums(owner_.bucket_) + first, to);
  }
  std::vector<float>& reduced = owner_.reduced_;
  reduced.resize(std::max(reduced.size(), count));
  owner_.fold_.fold(reduced.data(), addends, first, count);
  owner_.stepTile(first, count, reduced.data(), to);
}

bool Updater::StepKernel::runToAll(std::span<void* const> results,
                                   std::span<const void* const> addends, std::uint64_t first,
                                   std::size_t count) {
  if (!owner_.isFused()) return false;
  owner_.stepFused(results, addends, first, count);
  return true;
}

// In one pass, from gradients to the parameters of all ranks?
bool Updater::isFused() const {
  return state_.config().optimizer.kind == Optimizer::AdamW && !state_.aliasesWeights();
}

void Updater::stepFused(std::span<void* const> results, std::span<const void* const> gradients,
                        std::uint64_t first, std::size_t count) {
  state_.visitRuns(bucket_, own_.offset + first, count, nullptr, nullptr, [&](const StateRun& run) {
    const auto elementOf = [&](auto* data, DType type) { return data + run.at * sizeOf(type); };
    targets_.clear();
    for (void* result : results)
      targets_.push_back(elementOf(static_cast<std::byte*>(result), run.slice.outType));
    addends_.clear();
    if (!kernel_.folds) addends_ = {{state_.finalSums(bucket_) + first + run.at, DType::F32}};
    const DType wire = state_.config().wireType;
    for (std::size_t i = 0; kernel_.folds && i < gradients.size(); ++i)
      addends_.push_back({elementOf(static_cast<const std::byte*>(gradients[i]), wire), wire});
    stepFused(run, first + run.at);
  });
}

// The run whose gradients and results are `addends_` and `targets_`.
void Updater::stepFused(const StateRun& run, std::uint64_t first) {
  GradientStats stats;
  foldAndStepAdamW(adamWOf(state_.config().optimizer, settings_, run),
                   {.first = run.slice.first,
                    .n = run.slice.n,
                    .weights = static_cast<float*>(run.slice.weights),
                    .m = run.state[0],
                    .v = run.state[1],
                    .gradients = addends_,
                    .out = targets_,
                    .outType = run.slice.outType,
                    .rounding = run.slice.rounding},
                   kernel_.folds ? &stats : nullptr);
  if (!kernel_.folds) return;
  if (stats.nonFinite == 0)
    report_->squares.add(stats.squares);
  else
    reportAnew(first, run.slice.n);
}

// By the kernel that also knows whose gradients are not finite.
void Updater::reportAnew(std::uint64_t first, std::size_t count) {
  reduced_.resize(std::max(reduced_.size(), kTile));
  for (std::size_t at = 0; at < count; at += kTile) {
    inputs_.clear();
    for (const Addend& a : addends_)
      inputs_.push_back(static_cast<const std::byte*>(a.data) + at * sizeOf(a.type));
    fold_.fold(reduced_.data(), inputs_, first + at, std::min(kTile, count - at));
  }
}

void Updater::stepTile(std::uint64_t first, std::size_t count, float* gradients,
                       std::byte* result) {
  state_.visitRuns(bucket_, own_.offset + first, count, gradients, result,
                   [&](const StateRun& run) {
                     const Status status =
                         stepRun(state_.config().optimizer, settings_, run, ratios_[run.parameter]);
                     if (failure_.status.ok() && !status.ok()) failure_ = {status, run.parameter};
                   });
}

void Updater::aim(std::uint32_t bucket) {
  bucket_ = bucket;
  own_ = state_.part(bucket, Level::State);
}

std::byte* Updater::keptAt(const ShardState::Range& part) const {
  const ShardState::Range home = state_.part(bucket_, Level::Param);
  return state_.keptParameters(bucket_) +
         (part.offset - home.offset) * sizeOf(state_.config().paramType);
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
  Call call;
  call.collective = Collective::AllGather;
  call.type = state_.config().paramType;
  call.count = elements;
  Communicator& group = *mesh_.group(level);
  if (steps) {
    call.op = RedOp::Kernel;
    kernel_.folds = false;
    return group.run(call, nullptr, to, kernel_, timeoutMs_, "parameters");
  }
  const std::byte* const mine = to + mesh_.position(level) * elements * sizeOf(call.type);
  return group.run(call, mine, to, nullptr, timeoutMs_, "parameters");
}

void Updater::stepAlone(std::byte* result) {
  const std::size_t size = sizeOf(state_.config().paramType);
  kernel_.folds = false;
  for (std::uint64_t at = 0; at < own_.elements; at += kTile)
    kernel_.run(result + at * size, {}, at, std::min<std::uint64_t>(kTile, own_.elements - at));
}

Status Updater::step(std::uint32_t bucket, std::byte* wire, GradientReport* report) {
  aim(bucket);
  FoldKernel::Job job;
  job.layout = &state_.layout();
  job.bucket = bucket;
  job.offset = own_.offset;
  job.type = state_.config().wireType;
  job.final = true;
  job.report = report;
  fold_.begin(job);
  report_ = report;
  kernel_.folds = true;
  Call call;
  call.collective = Collective::AllReduce;
  call.op = RedOp::Kernel;
  call.type = job.type;
  call.count = own_.elements;
  return mesh_.group(Level::State)
      ->run(call, wire, state_.parameters(bucket), kernel_, timeoutMs_, "step");
}

// The first phase runs over all buckets before the second: the norms are of whole parameters.
Status Updater::prepare() {
  std::vector<TrustSums> sums(ratios_.size());
  for (std::uint32_t b = 0; b < state_.buckets(); ++b) {
    const ShardState::Range own = state_.part(b, Level::State);
    state_.visitRuns(b, own.offset, own.elements, state_.finalSums(b), nullptr,
                     [&](const StateRun& run) {
                       prepareLamb(state_.config().optimizer, settings_, run, &sums[run.parameter]);
                     });
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
  static_assert(sizeof(TrustSums) == 2 * sizeof(ExactSum::Words));
  Call call;
  call.collective = Collective::AllReduce;
  call.op = RedOp::Sum;
  call.type = DType::I64;
  call.count = sums->size() * 2 * ExactSum::kWords;
  return mesh_.world()->run(call, sums->data(), sums->data(), nullptr, timeoutMs_, "trust ratios");
}

}  // namespace weft
