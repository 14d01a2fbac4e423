// SPDX-License-Identifier: Apache-2.0
#include "transports/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace weft::transport {
namespace {

long futex(std::atomic<std::uint32_t>& word, int op, std::uint32_t value, const timespec* timeout) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  // Not FUTEX_PRIVATE_FLAG: ringers may be other processes.
  return syscall(SYS_futex, &word, op, value, timeout, nullptr, 0);
}

}  // namespace

void relieveRingers(ControlPage& mine) { mine.ringFence.store(0, std::memory_order_seq_cst); }

namespace detail {

void announceSleep(ControlPage& mine) {
  mine.sleeping.exchange(1, std::memory_order_seq_cst);
  if constexpr (!kTsan) {
    if (mine.ringFence.load(std::memory_order_relaxed) == 0) heavyFence();
#if !defined(__SANITIZE_THREAD__)
    else
      std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
}

void futexWait(std::atomic<std::uint32_t>& doorbell, std::uint32_t ticket,
               std::chrono::nanoseconds max) {
  if (max <= std::chrono::nanoseconds::zero()) return;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec timeout{max.count() / kSecond, max.count() % kSecond};
  futex(doorbell, FUTEX_WAIT, ticket, &timeout);
}

// One ringer of many makes the system call: whoever takes `sleeping` down. The bell must move after
// that: a sleeper that announces itself again in between has an old ticket then and does not sleep.
void wakeSleeper(ControlPage& sleeper) {
  if (sleeper.sleeping.exchange(0, std::memory_order_acq_rel) == 0) return;
  sleeper.doorbell.fetch_add(1, std::memory_order_release);
  futex(sleeper.doorbell, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace detail
}  // namespace weft::transport
