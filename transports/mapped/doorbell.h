// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "transports/segment.h"

// Sleep until somebody has put something, without a lost wake-up and (almost) without a cost for
// those who put.
//
// It is Dekker's game: the sleeper writes `sleeping`, then reads its cells; the putter writes a
// cell, then reads `sleeping`. Each needs its write to be visible before its read. The sleeper pays
// for both: membarrier(2) makes every running thread of every registered process execute a full
// barrier, so a put needs to stop only the compiler. Where membarrier is missing (old kernel,
// seccomp) the owner leaves ControlPage::ringFence at 1 and every put to it executes the fence.
namespace weft {

// ThreadSanitizer knows neither fences nor membarrier; there the race is decided by
// read-modify-writes of `sleeping`.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kTsan = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kTsan = true;
#else
inline constexpr bool kTsan = false;
#endif
#else
inline constexpr bool kTsan = false;
#endif

// Registers this process for the barriers of its peers. False: they must not rely on it.
bool registerForBarriers();
// To be called by the owner of the page once it knows that all who will ever put into it are
// registered (and itself, for a registered process may also order barriers).
void relieveRingers(ControlPage& mine);

namespace detail {
void wakeSleeper(ControlPage& sleeper);
// Makes the announcement visible before anything that is read later.
void announceSleep(ControlPage& mine);
// Waits until the doorbell is no longer `ticket`, at most `max`. May wake up for no reason.
void futexWait(std::atomic<std::uint32_t>& doorbell, std::uint32_t ticket,
               std::chrono::nanoseconds max);
inline void storeLoadBarrier(ControlPage& sleeper) {
  if constexpr (kTsan) {
    sleeper.sleeping.fetch_add(0, std::memory_order_acq_rel);
  } else if (sleeper.ringFence.load(std::memory_order_relaxed) != 0) {
#if !defined(__SANITIZE_THREAD__)
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}
}  // namespace detail

// After a store that `sleeper` may be waiting for: wakes it if it sleeps. Any thread, any process.
inline void doorbellRing(ControlPage& sleeper) {
  detail::storeLoadBarrier(sleeper);
  if (sleeper.sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]]
    detail::wakeSleeper(sleeper);
}

// Sleeps until somebody rings, `max` has passed, or for no reason at all: call it in a loop. Does
// not sleep when ready() is true after the announcement. Only the owner of the page, one thread at
// a time. Keep `max` short (milliseconds): a ringer that is killed half-way may leave its wake-up
// undone.
template <class Ready>
void doorbellWait(ControlPage& mine, std::chrono::nanoseconds max, Ready&& ready) {
  const std::uint32_t ticket = mine.doorbell.load(std::memory_order_acquire);
  detail::announceSleep(mine);
  if (!ready()) detail::futexWait(mine.doorbell, ticket, max);
  mine.sleeping.store(0, std::memory_order_release);
}

}  // namespace weft
