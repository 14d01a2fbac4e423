// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>

// Sleep on a word of this process. Whoever changes it wakes those who may sleep; they look again.
namespace weft::engine {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

inline void futexWait(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  (void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

inline void futexWait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                      std::chrono::nanoseconds most) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec limit = {.tv_sec = most.count() / kSecond, .tv_nsec = most.count() % kSecond};
  (void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &limit, nullptr, 0);
}

inline void futexWake(std::atomic<std::uint32_t>& word, int most) {
  (void)syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

}  // namespace weft::engine
