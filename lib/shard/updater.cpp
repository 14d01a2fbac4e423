// SPDX-License-Identifier: Apache-2.0
#include "shard/updater.h"

#include <algorithm>

#include "shard/hops.h"

namespace weft::shard {
namespace {

// Of each element, in LAMB's first phase: weights, and m, v and gradients there and back.
constexpr double kLambBytes = 7 * sizeof(float);

}  // namespace

Updater::Updater(const Mesh& mesh, ShardState& state)
    : mesh_(mesh),
      state_(state),
      work_(mesh.crew()),
      stepper_(state),
      ratios_(state.layout().parameters().size(), 1.0) {}

void Updater::begin(const StepSettings& settings, int timeoutMs) {
  settings_ = settings;
  timeoutMs_ = timeoutMs;
  stepper_.forget();
}

void Updater::aim(std::uint32_t bucket) {
  bucket_ = bucket;
  own_ = state_.part(bucket, Level::State);
}

Stepper::Job Updater::job() const {
  return {.settings = settings_, .bucket = bucket_, .own = own_, .ratios = ratios_.data()};
}

std::byte* Updater::keptAt(const ShardState::Range& part) const {
  const ShardState::Range home = state_.part(bucket_, Level::Param);
  return state_.keptParameters(bucket_) +
         (part.offset - home.offset) * reduce::sizeOf(state_.config().paramType);
}

Status Updater::publish(std::uint32_t bucket) {
  aim(bucket);
  state_.roundWeights(bucket, keptAt(own_));
  bool any = false;
  return visitUpdates(
      mesh_.levels(), state_.layout().buckets()[bucket].elements, state_.config().paramType, &any,
      [&](Level level, const plan::Call& call, bool) { return gather(level, call, false); });
}

Status Updater::update(std::uint32_t bucket) {
  aim(bucket);
  bool any = false;
  WEFT_TRY(visitUpdates(
      mesh_.levels(), state_.layout().buckets()[bucket].elements, state_.config().paramType, &any,
      [&](Level level, const plan::Call& call, bool steps) { return gather(level, call, steps); }));
  if (!any) stepAlone(keptAt(own_));
  return {};
}

// An all-gather in place of blocks that are stepped on the way, or have been.
Status Updater::gather(Level level, const plan::Call& call, bool steps) {
  comm::Communicator& group = *mesh_.group(level);
  std::byte* const to = level == Level::State ? keptAt(state_.part(bucket_, Level::Grad))
                                              : state_.keptParameters(bucket_);
  if (!steps) {
    const std::size_t before = mesh_.position(level) * call.count * reduce::sizeOf(call.type);
    return group.allGather(to + before, to, call.count, call.type, timeoutMs_, "parameters");
  }
  stepper_.begin(job());
  const Status status = group.run(call, nullptr, to, stepper_, timeoutMs_, "parameters");
  stepper_.end();
  return status;
}

void Updater::stepAlone(std::byte* result) {
  const std::size_t size = reduce::sizeOf(state_.config().paramType);
  stepper_.begin(job());
  work_.run(stepper_, own_.elements, static_cast<double>(sizeof(float) + size),
            [&](plan::Epilogue& mine, std::uint64_t at, std::size_t count) {
              mine.run(result + at * size, {}, at, count);
            });
  stepper_.end();
}

Status Updater::step(std::uint32_t bucket, std::byte* wire, GradientReport* report) {
  aim(bucket);
  Stepper::Job folding = job();
  folding.folds = true;
  folding.report = report;
  stepper_.begin(folding);
  const plan::Call call =
      epilogueCall(schedule::Collective::AllReduce, state_.config().wireType, own_.elements);
  const Status status =
      mesh_.group(Level::State)
          ->run(call, wire, state_.parameters(bucket), stepper_, timeoutMs_, "step");
  stepper_.end();
  return status;
}

// The first phase runs over all buckets before the second: the norms are of whole parameters.
Status Updater::prepare() {
  const OptimizerSettings& optimizer = state_.config().optimizer;
  std::vector<std::vector<TrustSums>> found(work_.threads(),
                                            std::vector<TrustSums>(ratios_.size()));
  for (std::uint32_t b = 0; b < state_.buckets(); ++b) {
    aim(b);
    const auto prepare = [&](std::uint32_t thread, std::uint64_t from, std::uint64_t end) {
      state_.visitRuns(b, own_.offset + from, end - from, state_.finalSums(b) + from, nullptr,
                       [&](const StateRun& run) {
                         prepareLamb(optimizer, settings_, run, &found[thread][run.parameter]);
                       });
    };
    work_.share(own_.elements, kLambBytes, prepare);
  }
  std::vector<TrustSums>& sums = found[0];
  for (std::size_t k = 1; k < found.size(); ++k)
    for (std::size_t p = 0; p < sums.size(); ++p) sums[p].add(found[k][p]);
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
