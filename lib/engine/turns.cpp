// SPDX-License-Identifier: Apache-2.0
#include "engine/turns.h"

namespace weft::engine {

bool Turns::awaitSlowly(std::uint64_t ticket, Deadline deadline) {
  std::unique_lock lock(mutex_);
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  const auto came = [&] { return current_.load(std::memory_order_seq_cst) >= ticket; };
  // In slices: doneWhileIssuing() does not notify whoever waits for the end of everything.
  while (!came() && !deadline.expired())
    changed_.wait_until(lock, deadline.orSooner(Deadline::in(1)).at(), came);
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  return came();
}

void Turns::notify() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace weft::engine
