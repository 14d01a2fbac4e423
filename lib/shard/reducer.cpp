// SPDX-License-Identifier: Apache-2.0
#include "shard/reducer.h"

#include <algorithm>

#include "shard/hops.h"

namespace weft::shard {

bool Reducer::takesPart(const MicroStep& micro) const {
  const ShardConfig& config = state_.config();
  return config.reproducible ? micro.endsRun() : movesGradients(config.degrees, micro.boundary);
}

std::byte* Reducer::wire(std::uint32_t bucket) {
  const ShardConfig& config = state_.config();
  std::byte* const gradients = state_.gradients(bucket);
  if (config.gradType == config.wireType) return gradients;
  const std::size_t from = reduce::sizeOf(config.gradType), to = reduce::sizeOf(config.wireType);
  const auto convert = [&](std::uint32_t, std::uint64_t at, std::uint64_t end) {
    const std::byte* const source = gradients + at * from;
    std::byte* const target = state_.wire() + at * to;
    if (config.gradType == reduce::DType::F32)
      reduce::castFloats(config.wireType, target, reinterpret_cast<const float*>(source), end - at,
                         {}, 0);
    else
      reduce::widen(config.gradType, reinterpret_cast<float*>(target), source, end - at);
  };
  work_.share(state_.layout().buckets()[bucket].elements, static_cast<double>(from + to), convert);
  return state_.wire();
}

// Is the sum of this level that of all ranks?
bool Reducer::isLast(Level level) const {
  return std::ranges::all_of(kAllLevels, [&](Level l) { return l <= level || mesh_.size(l) == 1; });
}

// What earlier runs have left of the tree, in sums of the members of the level.
std::uint64_t Reducer::leavesBefore(Level level, const MicroStep& micro) const {
  return state_.config().reproducible && isLast(level) ? micro.runsBefore() * mesh_.size(level) : 0;
}

FoldEpilogue::Job Reducer::jobFor(std::uint64_t offset, const Source& from, bool last,
                                  std::uint64_t leavesBefore) {
  return {.layout = &state_.layout(),
          .bucket = bucket_,
          .offset = offset,
          .type = from.type,
          .balanced = state_.config().reproducible,
          .leavesBefore = leavesBefore,
          .nodes = nodes_,
          .final = last,
          .report = last ? &report_ : &seen_};
}

Status Reducer::reduce(std::uint32_t bucket, const MicroStep& micro) {
  bucket_ = bucket;
  const ShardConfig& config = state_.config();
  const Layout::Bucket& all = state_.layout().buckets()[bucket];
  Source from{wire(bucket), config.wireType, {all.offset, all.elements}};
  WEFT_TRY(visitReductions(
      mesh_.levels(), all.elements, config.wireType, micro.boundary || config.reproducible,
      [&](Level level, const plan::Call& call) { return reduceAt(level, call, micro, &from); }));
  if (!micro.boundary) return {};
  const auto* const final = reinterpret_cast<const std::byte*>(state_.finalSums(bucket));
  if (from.data != final) unpack(from, state_.finalSums(bucket));
  return {};
}

Status Reducer::reduceAt(Level level, plan::Call call, const MicroStep& micro, Source* from) {
  const ShardConfig& config = state_.config();
  call.reproducible = config.reproducible;
  if (config.reproducible && isLast(level)) {
    WEFT_TRY(aimAtTree(micro.boundary ? 0 : (micro.runsBefore() + 1) * mesh_.size(level)));
    if (!micro.boundary) return intoTree(level, call, *from, micro);
  }
  if (level == Level::Replica) return acrossReplicas(call, *from, micro);
  if (level == Level::State)
    return hop(level, call, *from, state_.finalSums(bucket_), micro, false, from);
  const bool ends = level == Level::Grad || mesh_.size(Level::Grad) == 1;
  const bool accumulate = micro.index > 0 && config.degrees.grad > 1 && !config.reproducible;
  return hop(level, call, *from, ends ? state_.sums(bucket_) : state_.between(), micro,
             ends && accumulate, from);
}

// A reduce-scatter inside the groups of one level.
Status Reducer::hop(Level level, const plan::Call& call, const Source& from, float* to,
                    const MicroStep& micro, bool accumulate, Source* next) {
  const ShardState::Range mine{from.range.offset + mesh_.position(level) * call.count, call.count};
  FoldEpilogue::Job job =
      jobFor(mine.offset, from, micro.boundary && isLast(level), leavesBefore(level, micro));
  job.sums = to;
  job.accumulate = accumulate;
  epilogue_.begin(job);
  seen_ = {};
  WEFT_TRY(runWithSums(level, call, from.data, nullptr, micro));
  noteEarlyBad(level, micro);
  *next = {reinterpret_cast<std::byte*>(to), reduce::DType::F32, mine};
  return {};
}

Status Reducer::runWithSums(Level level, const plan::Call& call, const std::byte* in,
                            std::byte* out, const MicroStep& micro) {
  const Status status =
      mesh_.group(level)->run(call, in, out, epilogue_, micro.timeoutMs, "gradients");
  epilogue_.end();
  return status;
}

// What accumulates stays bad: whoever was first brought it.
void Reducer::noteEarlyBad(Level level, const MicroStep& micro) {
  if (seen_.firstBad >= early_.index) return;
  early_ = {seen_.firstBad, -1, micro.index * kLevels + static_cast<std::uint64_t>(level)};
  if (seen_.badMember >= 0)
    early_.rank =
        static_cast<std::int32_t>(mesh_.rankOf(level, static_cast<std::uint32_t>(seen_.badMember)));
}

// A sum of what the replicas have, in place.
Status Reducer::acrossReplicas(const plan::Call& call, const Source& from, const MicroStep& micro) {
  epilogue_.begin(jobFor(from.range.offset + mesh_.position(Level::Replica) * call.count, from,
                         true, leavesBefore(Level::Replica, micro)));
  return runWithSums(Level::Replica, call, from.data, from.data, micro);
}

// Of runs before the last one: what is complete of the tree stays with the owners of its parts.
Status Reducer::intoTree(Level level, plan::Call call, const Source& from, const MicroStep& micro) {
  call.collective = schedule::Collective::ReduceScatter;
  FoldEpilogue::Job job = jobFor(from.range.offset + mesh_.position(level) * call.count, from,
                                 false, leavesBefore(level, micro));
  job.isComplete = false;
  epilogue_.begin(job);
  seen_ = {};
  WEFT_TRY(runWithSums(level, call, from.data, nullptr, micro));
  noteEarlyBad(level, micro);
  return {};
}

// With room for the nodes of so many leaves. Each rank owns an equal part of a bucket.
Status Reducer::aimAtTree(std::uint64_t leaves) {
  const std::uint64_t ranks = mesh_.ranks(), all = state_.layout().bucketedElements() / ranks;
  const std::uint64_t from = state_.layout().buckets()[bucket_].offset / ranks;
  while (leaves >> tree_.size() != 0) {
    tree_.emplace_back();
    WEFT_TRY(ShardMemory::make(ShardMemory::Kind::Private, all * sizeof(float),
                               "sums of earlier micro-steps", &tree_.back()));
  }
  nodes_.clear();
  for (const ShardMemory& level : tree_) nodes_.push_back(level.as<float>().data() + from);
  return {};
}

// Where nobody else has a part: one addend.
void Reducer::unpack(const Source& from, float* to) {
  FoldEpilogue::Job job = jobFor(from.range.offset, from, mesh_.ranks() == 1);
  job.sums = to;
  epilogue_.begin(job);
  work_.run(epilogue_, from.range.elements, static_cast<double>(reduce::sizeOf(from.type)),
            [&](plan::Epilogue& mine, std::uint64_t at, std::size_t count) {
              const void* const addend = reduce::Addend{from.data, from.type}.from(at).data;
              mine.run(nullptr, {&addend, 1}, at, count);
            });
  epilogue_.end();
}

// A binary counter: carry k is the sum of 2^k micro-steps. The last micro-step of a run takes in all
// carries.
Status Reducer::keep(std::uint32_t bucket, const MicroStep& micro) {
  const Layout::Bucket& b = state_.layout().buckets()[bucket];
  auto* const gradients = reinterpret_cast<float*>(state_.gradients(bucket));
  std::size_t k = 0;
  for (; (micro.inRun() >> k & 1) != 0 || (micro.endsRun() && micro.inRun() >> k != 0); ++k) {
    if ((micro.inRun() >> k & 1) == 0) continue;
    const float* const carry = levels_[k].as<float>().data() + b.offset;
    const auto add = [&](std::uint32_t, std::uint64_t at, std::uint64_t end) {
      const reduce::Addend both[2] = {{carry + at, reduce::DType::F32},
                                      {gradients + at, reduce::DType::F32}};
      reduce::foldGradients(gradients + at, both, 1, false, end - at, 0, nullptr);
    };
    work_.share(b.elements, 3 * sizeof(float), add);
  }
  if (micro.endsRun()) return {};
  if (levels_.size() <= k) {
    levels_.emplace_back();
    WEFT_TRY(ShardMemory::make(ShardMemory::Kind::Private,
                               state_.layout().bucketedElements() * sizeof(float),
                               "the gradients of earlier micro-steps", &levels_.back()));
  }
  float* const carry = levels_[k].as<float>().data() + b.offset;
  work_.share(b.elements, 2 * sizeof(float),
              [&](std::uint32_t, std::uint64_t at, std::uint64_t end) {
                std::copy(gradients + at, gradients + end, carry + at);
              });
  state_.clearGradients(bucket);
  return {};
}

}  // namespace weft::shard
