// SPDX-License-Identifier: Apache-2.0
#include "engine/turns.h"

namespace weft {

bool Turns::awaitSlowly(std::uint64_t ticket, Deadline deadline) {
  std::unique_lock lock(mutex_);
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  const bool came = changed_.wait_until(
      lock, deadline.at(), [&] { return current_.load(std::memory_order_seq_cst) >= ticket; });
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  return came;
}

void Turns::notify() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace weft
