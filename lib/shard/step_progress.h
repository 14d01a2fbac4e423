// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "base/text.h"

namespace weft::shard {

// How far a step has come, for those who wait for it. Any thread.
class StepProgress {
 public:
  // At first no step is at work.
  explicit StepProgress(std::uint32_t buckets) : isCurrent_(buckets, 1) {}

  void begin() { set(0); }  // an update of every bucket is to come
  void markUpdated(std::uint32_t bucket) {
    const std::lock_guard lock(mutex_);
    isCurrent_[bucket] = 1;
    changed_.notify_all();
  }
  void end() { set(1); }

  // Until end(); what ends a step has deadlines.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_; });
  }
  // Until no update of the bucket is to come. What ends a step has deadlines of `timeoutMs`, and names the
  // rank that it has waited for: this one is longer, and is for updates that nobody has begun.
  Status awaitUpdate(std::uint32_t bucket, int timeoutMs) {
    std::unique_lock lock(mutex_);
    WEFT_TRY(failure_);
    const auto isCurrent = [&] { return isCurrent_[bucket] != 0; };
    const std::chrono::milliseconds patience = 2 * std::chrono::milliseconds(timeoutMs);
    if (changed_.wait_for(lock, patience, isCurrent)) return {};
    return Status::error(Code::Timeout, "the update of bucket ", bucket, " did not end within ",
                         patience.count(), " ms; fix: weftStepWait has the reason");
  }

  // The first error here ends all later steps. Returns that, if any.
  Status fail(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = status;
    return failure_;
  }

 private:
  void set(std::uint8_t isCurrent) {
    const std::lock_guard lock(mutex_);
    isCurrent_.assign(isCurrent_.size(), isCurrent);
    ended_ = isCurrent != 0;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint8_t> isCurrent_;  // by bucket
  bool ended_ = true;
  Status failure_;
};

}  // namespace weft::shard
