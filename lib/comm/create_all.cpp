// SPDX-License-Identifier: Apache-2.0
// Communicators whose ranks are threads of this process: no bootstrap, no socket.
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/deadline.h"
#include "base/log.h"
#include "base/text.h"
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
    } else if (!next_.wait_until(lock, deadline_.at(), [&] { return round_ != round; })) {
      return Status::error(Code::Timeout, text("rank ", rank, " waits for other threads' ranks; ",
                                               arrived_, " of ", ranks_, " came"));
    }
    *all = blobs;
    return {};
  }

 private:
  const std::size_t ranks_;
  const Deadline deadline_;
  std::mutex mutex_;
  std::condition_variable next_;
  std::size_t arrived_ = 0;
  std::uint64_t round_ = 0;
  std::vector<std::vector<std::byte>> blobs_[2];
};

}  // namespace

Status createAll(int ranks, const CommConfig& config,
                 std::vector<std::shared_ptr<Communicator>>* out) {
  const std::size_t n = static_cast<std::size_t>(ranks);
  Meeting meeting(n, Deadline::in(config.initTimeoutMs));
  const std::vector<RankPlace> members(n, RankPlace{hostName(), "this process", ::getpid()});
  out->assign(n, nullptr);
  std::vector<Status> results(n);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      const Exchange exchange = [&meeting, r](std::span<const std::byte> mine, auto* all) {
        return meeting.gather(r, mine, all);
      };
      results[r] =
          buildCommunicator(static_cast<std::uint32_t>(r), members, exchange, config, &(*out)[r]);
    });
  }
  for (std::thread& t : threads) t.join();
  for (const Status& s : results) WEFT_TRY(s);
  return {};
}

}  // namespace weft
