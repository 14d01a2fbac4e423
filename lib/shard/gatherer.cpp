// SPDX-License-Identifier: Apache-2.0
#include "shard/gatherer.h"

#include <algorithm>
#include <utility>

#include "base/threads.h"

namespace weft::shard {

Gatherer::Gatherer(Mesh& mesh, ShardState& state, StepProgress& progress, int timeoutMs)
    : mesh_(mesh),
      state_(state),
      progress_(progress),
      timeoutMs_(timeoutMs),
      copies_(state.buckets(), Copy::Here),
      failed_(state.buckets()) {}

void Gatherer::begin(std::uint32_t bucket) {
  const std::lock_guard untilItIsComing(mutex_);
  if (copies_[bucket] != Copy::Absent) return;
  stream_.enqueue([this, bucket] {
    const Status status = gather(bucket);
    const std::lock_guard lock(mutex_);
    copies_[bucket] = status.ok() ? Copy::Here : Copy::Absent;
    failed_[bucket] = status;
    came_.notify_all();
    return Status();
  });
  copies_[bucket] = Copy::Coming;
}

Status Gatherer::gather(std::uint32_t bucket) {
  const Status status = withoutExceptions([&]() -> Status {
    WEFT_TRY(progress_.awaitUpdate(bucket, timeoutMs_));
    return mesh_.gatherers()->allGather(state_.keptParameters(bucket), state_.parameters(bucket),
                                        state_.part(bucket, Level::Param).elements,
                                        state_.config().paramType, timeoutMs_, "parameters");
  });
  if (!status.ok()) mesh_.fail(status);  // others may have it, and would be out of step
  return status;
}

Status Gatherer::wait(std::uint32_t bucket) {
  begin(bucket);
  std::unique_lock lock(mutex_);
  came_.wait(lock, [&] { return copies_[bucket] != Copy::Coming; });  // its steps have deadlines
  return copies_[bucket] == Copy::Here ? Status() : failed_[bucket];
}

void Gatherer::drop(std::uint32_t bucket) {
  std::unique_lock lock(mutex_);
  came_.wait(lock, [&] { return copies_[bucket] != Copy::Coming; });
  if (std::exchange(copies_[bucket], Copy::Absent) == Copy::Here) state_.dropParameters(bucket);
}

bool Gatherer::isBusy() {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(copies_, Copy::Coming) != copies_.end();
}

Status gatherArray(const Mesh& mesh, const ShardState& state, std::uint32_t bucket,
                   std::size_t array, std::vector<float>* all, int timeoutMs) {
  const Layout::Bucket& b = state.layout().buckets()[bucket];
  all->assign(b.elements, 0);
  state.visitOwn(bucket, [&](const StateRun& run) {
    const std::uint64_t at = state.layout().slot(run.parameter).offset + run.from - b.offset;
    const StateRun::Array mine = run.array(array);
    reduce::widen(mine.type, all->data() + at, mine.data, run.slice.n);
  });
  for (const Level level : {Level::State, Level::Grad, Level::Param}) {
    if (mesh.size(level) == 1) continue;
    const ShardState::Range part = state.part(bucket, level);
    float* const mine = all->data() + (part.offset - b.offset);
    WEFT_TRY(mesh.group(level)->allGather(mine, mine - mesh.position(level) * part.elements,
                                          part.elements, reduce::DType::F32, timeoutMs, "weights"));
  }
  return {};
}

}  // namespace weft::shard
