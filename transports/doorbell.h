// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/asymmetric_fence.h"
#include "transports/window.h"

// Sleep until somebody has put something, without a lost wake-up and (almost) without a cost for
// those who put.
//
// Dekker's algorithm: the sleeper writes `sleeping`, then reads its arrival slots; the putter
// writes one, then reads `sleeping`. Each needs its write to be visible before its read. The
// sleeper pays for both (base/asymmetric_fence.h, also why that is enough), so a put needs to stop
// only the compiler. Where membarrier is missing (old kernel, seccomp) the owner leaves
// ControlPage::ringFence at 1 and every put to it fences, as the sleeper does.
//
// Nothing less will do. x86 keeps a store in its buffer while a later load is served, whatever
// release and acquire say; and ARM in addition may serve a load before the store of an earlier
// exchange, even a sequentially consistent one, so the sleeper fences after its exchange, too.
namespace weft::transport {

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
// True: it serves for all sleepers.
inline bool storeLoadBarrier(ControlPage& sleeper) {
  if constexpr (kTsan) {  // read-modify-writes of `sleeping` decide the race
    sleeper.sleeping.fetch_add(0, std::memory_order_acq_rel);
  } else if (sleeper.ringFence.load(std::memory_order_relaxed) != 0) {
#if !defined(__SANITIZE_THREAD__)
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    return true;
  } else {
    lightFence();
  }
  return false;
}
}  // namespace detail

// After a store that `sleeper` may be waiting for: wakes it if it sleeps. Any thread, any process.
inline void doorbellRing(ControlPage& sleeper) {
  detail::storeLoadBarrier(sleeper);
  if (sleeper.sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]]
    detail::wakeSleeper(sleeper);
}

// After one store that several may be waiting for: which of them must be rung? For all together one
// fence at most.
class Sleepers {
 public:
  bool include(ControlPage& page) {
    if (!fenced_) fenced_ = detail::storeLoadBarrier(page);
    return page.sleeping.load(std::memory_order_relaxed) != 0;
  }

 private:
  bool fenced_ = false;
};

// Sleeps until somebody rings, `max` has passed, or for no reason at all: call it in a loop. Does
// not sleep when ready() is true after the announcement. Only the owner of the page, one thread at
// a time. Keep `max` short (milliseconds): a ringer may be killed before it wakes the sleeper.
template <class Ready>
void doorbellWait(ControlPage& mine, std::chrono::nanoseconds max, Ready&& ready) {
  const std::uint32_t ticket = mine.doorbell.load(std::memory_order_acquire);
  detail::announceSleep(mine);
  if (!ready()) detail::futexWait(mine.doorbell, ticket, max);
  mine.sleeping.store(0, std::memory_order_release);
}

}  // namespace weft::transport
