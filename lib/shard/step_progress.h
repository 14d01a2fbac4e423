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
  // Until no update of the bucket is to come.
  Status awaitUpdate(std::uint32_t bucket, int timeoutMs) {
    std::unique_lock lock(mutex_);
    WEFT_TRY(failure_);
    const auto isCurrent = [&] { return isCurrent_[bucket] != 0; };
    if (changed_.wait_for(lock, std::chrono::milliseconds(timeoutMs), isCurrent)) return {};
    return Status::error(Code::Timeout, "the update of bucket ", bucket, " did not end within ",
                         timeoutMs, " ms; fix: weftStepWait has the reason");
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
