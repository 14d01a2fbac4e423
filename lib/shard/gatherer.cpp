// SPDX-License-Identifier: Apache-2.0
#include "shard/gatherer.h"

#include <algorithm>
#include <utility>

namespace weft {

Gatherer::Gatherer(Mesh& mesh, ShardState& state, int timeoutMs, AwaitUpdate awaitUpdate)
    : mesh_(mesh),
      state_(state),
      timeoutMs_(timeoutMs),
      awaitUpdate_(std::move(awaitUpdate)),
      copies_(state.buckets(), Copy::Here),
      failed_(state.buckets()) {}

void Gatherer::begin(std::uint32_t bucket) {
  {
    const std::lock_guard lock(mutex_);
    if (copies_[bucket] != Copy::Absent) return;
    copies_[bucket] = Copy::Coming;
  }
  stream_.enqueue([this, bucket] {
    const Status status = gather(bucket);
    const std::lock_guard lock(mutex_);
    copies_[bucket] = status.ok() ? Copy::Here : Copy::Absent;
    failed_[bucket] = status;
    came_.notify_all();
    return Status();
  });
}

Status Gatherer::gather(std::uint32_t bucket) {
  Status status = awaitUpdate_(bucket);
  Call call;
  call.collective = Collective::AllGather;
  call.type = state_.config().paramType;
  call.count = state_.part(bucket, Level::Param).elements;
  if (status.ok())
    status = mesh_.gatherers()->run(call, state_.keptParameters(bucket), state_.parameters(bucket),
                                    nullptr, timeoutMs_, "parameters");
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

}  // namespace weft
