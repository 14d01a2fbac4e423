// SPDX-License-Identifier: Apache-2.0
#include "shard/updater.h"

#include <algorithm>
#include <utility>

#include "shard/hops.h"

namespace weft::shard {
namespace {

// Of each element, in LAMB's first phase: weights, and m, v and gradients there and back.
constexpr double kTrustBytes = 7 * sizeof(float), kNormBytes = sizeof(float);

}  // namespace

Updater::Updater(const Mesh& mesh, ShardState& state, SplitParameters split)
    : mesh_(mesh),
      state_(state),
      work_(mesh.crew()),
      stepper_(state),
      trust_(state.layout().parameters().size()),
      split_(std::move(split)) {}

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
  return {.settings = settings_, .bucket = bucket_, .own = own_, .trust = trust_.data()};
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

// Exact sums of all ranks, in place of this one's.
template <class Sums>
Status Updater::share(comm::Communicator* ranks, std::vector<Sums>* sums) {
  static_assert(sizeof(Sums) % sizeof(reduce::ExactSum::Words) == 0);
  plan::Call call;
  call.collective = schedule::Collective::AllReduce;
  call.op = reduce::RedOp::Sum;
  call.type = reduce::DType::I64;
  call.count = sums->size() * sizeof(Sums) / sizeof(std::int64_t);
  return ranks->run(call, sums->data(), sums->data(), nullptr, timeoutMs_, "trust ratios");
}

// Of parameters of which other parts have the rest.
template <class Sums>
Status Updater::sumOverParts(std::vector<Sums>* all) {
  if (split_.count() == 0) return {};
  std::vector<Sums> shared(split_.count());
  for (const auto& [parameter, number, counts] : split_.own())
    if (counts) shared[number] = (*all)[parameter];
  WEFT_TRY(share(mesh_.parts(), &shared));
  for (const auto& [parameter, number, counts] : split_.own()) (*all)[parameter] = shared[number];
  return {};
}

// add(run, &sums of its parameter) for all that this rank owns, and then the sums of all ranks and parts.
template <class Sums, class Add>
Status Updater::sumByParameter(double bytes, std::vector<Sums>* all, const Add& add) {
  std::vector<std::vector<Sums>> found(work_.threads(), std::vector<Sums>(trust_.size()));
  for (std::uint32_t b = 0; b < state_.buckets(); ++b) {
    aim(b);
    const auto sum = [&](std::uint32_t thread, std::uint64_t from, std::uint64_t end) {
      state_.visitRuns(b, own_.offset + from, end - from, state_.finalSums(b) + from, nullptr,
                       [&](const StateRun& run) { add(run, &found[thread][run.parameter]); });
    };
    work_.share(own_.elements, bytes, sum);
  }
  *all = std::move(found[0]);
  for (std::size_t k = 1; k < found.size(); ++k)
    for (std::size_t p = 0; p < all->size(); ++p) (*all)[p].add(found[k][p]);
  if (mesh_.ranks() > 1) {
    // Replicas have the same sums: one of them counts.
    if (mesh_.position(Level::Replica) != 0) std::ranges::fill(*all, Sums{});
    WEFT_TRY(share(mesh_.world(), all));
  }
  return sumOverParts(all);
}

// LANS divides the gradients of each parameter by their norm, before anything else.
Status Updater::normalize() {
  std::vector<reduce::ExactSum> squares;
  WEFT_TRY(sumByParameter(kNormBytes, &squares, [](const StateRun& run, reduce::ExactSum* sum) {
    reduce::addSquares(run.gradients, run.slice.first, run.slice.n, sum);
  }));
  for (std::size_t p = 0; p < squares.size(); ++p)
    trust_[p].scale = normalizing(state_.config().optimizer, settings_, squares[p]);
  return {};
}

// The first phase runs over all buckets before the second: the norms are of whole parameters.
Status Updater::prepare() {
  const OptimizerSettings& optimizer = state_.config().optimizer;
  if (optimizer.kind == Optimizer::Lans) WEFT_TRY(normalize());
  std::vector<TrustSums> sums;
  WEFT_TRY(sumByParameter(kTrustBytes, &sums, [&](const StateRun& run, TrustSums* sum) {
    prepareTrust(optimizer, settings_, run, trust_[run.parameter].scale, sum);
  }));
  for (std::size_t p = 0; p < sums.size(); ++p) {
    const bool decays = !state_.layout().parameters()[p].noDecay;
    decideTrust(optimizer, sums[p], decays ? state_.weightDecay : 0, &trust_[p]);
  }
  return {};
}

}  // namespace weft::shard
