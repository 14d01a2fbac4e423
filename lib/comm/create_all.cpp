// SPDX-License-Identifier: Apache-2.0
// Communicators whose ranks are threads of this process: no bootstrap, no socket.
#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "base/deadline.h"
#include "base/log.h"
#include "base/text.h"
#include "base/threads.h"
#include "comm/create.h"

namespace weft {
namespace {

// All-gather between threads. Two rounds may overlap at most: nobody enters a round before all have
// left the one before the last, since each round waits for all.
class Meeting {
 public:
  Meeting(std::size_t ranks, Deadline deadline) : ranks_(ranks), deadline_(deadline) {}

  Status gather(std::size_t rank, std::span<const std::byte> mine,
                std::vector<std::vector<std::byte>>* all) {
    std::unique_lock lock(mutex_);
    const std::uint64_t round = round_;
    std::vector<std::vector<std::byte>>& blobs = blobs_[round % 2];
    if (arrived_ == 0) blobs.assign(ranks_, {});
    blobs[rank].assign(mine.begin(), mine.end());
    if (++arrived_ == ranks_) {
      arrived_ = 0;
      ++round_;
      next_.notify_all();
    } else if (!next_.wait_until(lock, deadline_.at(),
                                 [&] { return round_ != round || !failure_.ok(); })) {
      return Status::error(Code::Timeout, text("rank ", rank, " waits for other threads' ranks; ",
                                               arrived_, " of ", ranks_, " came"));
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
  const std::size_t ranks_;
  const Deadline deadline_;
  std::mutex mutex_;
  std::condition_variable next_;
  std::size_t arrived_ = 0;
  std::uint64_t round_ = 0;
  Status failure_;  // the first one
  std::vector<std::vector<std::byte>> blobs_[2];
};

}  // namespace

Status createAll(int ranks, const CommConfig& config,
                 std::vector<std::shared_ptr<Communicator>>* out) {
  const std::size_t n = static_cast<std::size_t>(ranks);
  Meeting meeting(n, Deadline::in(config.initTimeoutMs));
  const std::vector<RankPlace> members(n, RankPlace{hostName(), "this process", ::getpid()});
  out->assign(n, nullptr);
  return onThreads(n, [&](std::size_t r) -> Status {
    const Exchange exchange = [&meeting, r](std::span<const std::byte> mine, auto* all) {
      return meeting.gather(r, mine, all);
    };
    const Status built = withoutExceptions([&] {
      return buildCommunicator(static_cast<std::uint32_t>(r), members, exchange, config,
                               &(*out)[r]);
    });
    return built.ok() ? built : meeting.leave(built);
  });
}

}  // namespace weft
