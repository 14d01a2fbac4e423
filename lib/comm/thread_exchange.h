// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "base/text.h"

namespace weft::comm {

// All-gather between threads. Two rounds may overlap at most: nobody enters a round before all have
// left the one before the last, since each round waits for all.
class ThreadExchange {
 public:
  ThreadExchange(std::size_t ranks, Deadline deadline) : ranks_(ranks), deadline_(deadline) {}

  Status gather(std::size_t rank, std::span<const std::byte> mine,
                std::vector<std::vector<std::byte>>* all) {
    std::unique_lock lock(mutex_);
    if (all == nullptr) return failure_;
    const std::uint64_t round = round_;
    std::vector<std::vector<std::byte>>& blobs = blobs_[round % 2];
    if (arrived_.empty()) blobs.assign(ranks_, {});
    blobs[rank].assign(mine.begin(), mine.end());
    if (arrived_.insert(rank); arrived_.size() == ranks_) {
      arrived_.clear();
      ++round_;
      next_.notify_all();
    } else if (!next_.wait_until(lock, deadline_.at(),
                                 [&] { return round_ != round || !failure_.ok(); })) {
      return late(rank);
    }
    if (round_ == round) return failure_;
    *all = blobs;
    return {};
  }

  // A rank that failed will not come any more: nobody needs to wait for it.
  Status leave(const Status& why) {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = why;
    next_.notify_all();
    return failure_;
  }

 private:
  Status late(std::size_t rank) const {
    ErrorData data{.code = Code::Timeout};
    data.what = text("rank ", rank, " waits for other threads' ranks; ", arrived_.size(), " of ",
                     ranks_, " came");
    for (std::uint32_t r = 0; r < ranks_; ++r)
      if (!arrived_.contains(r)) data.missing.push_back(r);
    return Status::error(std::move(data));
  }

  const std::size_t ranks_;
  const Deadline deadline_;
  std::mutex mutex_;
  std::condition_variable next_;
  std::set<std::size_t> arrived_;
  std::uint64_t round_ = 0;
  Status failure_;  // the first one
  std::vector<std::vector<std::byte>> blobs_[2];
};

}  // namespace weft::comm
