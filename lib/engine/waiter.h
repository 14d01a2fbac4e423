// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "transports/window.h"

namespace weft::engine {

// The core that a rank waits on, published to its peers. Only a hint: a rank that has not waited
// lately may have moved.
class Seat {
 public:
  explicit Seat(transport::ControlPage& mine) : core_(mine.core) {}

  void take() {
    const std::uint32_t core = static_cast<std::uint32_t>(sched_getcpu()) + 1;
    if (core_.load(std::memory_order_relaxed) != core) core_.store(core, std::memory_order_relaxed);
  }
  // False if the peer is of another host, or has not waited yet.
  bool isShared(const transport::ControlPage* peer) const {
    return peer != nullptr &&
           peer->core.load(std::memory_order_relaxed) == core_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t>& core_;
};

// What whoever waits does meanwhile, for those that may wait for it elsewhere.
struct Meanwhile {
  void (*call)(void* context) = nullptr;
  void* context = nullptr;
};

// How ranks wait on this machine; equal for all waits of a communicator.
struct WaitTuning {
  bool crowded = false;                     // more ranks than cores
  std::uint32_t eager = 32;                 // polls before anything else
  std::uint32_t spins = 1000;               // polls before the core is offered to others
  std::uint32_t respins = 20;               // polls after they had it
  std::chrono::microseconds yieldFor{500};  // how long it is offered again and again
  std::chrono::milliseconds sleepMax{20};   // then sleeps on the doorbell, 1 ms doubling up to this
  std::uint64_t uninterrupted = 4 << 20;    // bytes of an op until it looks for an abort: 0.5 ms
  Meanwhile meanwhile{};                    // each time that the core is given away
};

// `spinUs` < 0: as is best for so many ranks on so many cores.
WaitTuning tuneWaiting(std::uint32_t localRanks, std::uint32_t cores, std::int64_t spinUs);

// The waits of one thread. Each goes, from the moment when there is nothing to do until there is:
// spin, yield, sleep. Makes no system call while it spins.
//
// A rank yields to those it waits for: at once if one of them is on this core, where it cannot come
// before; else it spins, because a yield costs several exchanges between cores. Where each rank has
// a core, a yield that returns late has gone to other processes. It also cost this thread its turn
// for a scheduler's slice, which sleep does not: so it sleeps in the waits that follow.
class Waiter {
 public:
  enum class Advice : std::uint8_t {
    Poll,   // look again
    Check,  // look again, and look for trouble: about once a millisecond
    Sleep,  // as Check; then sleep for sleepTime() unless there is something to do
  };

  // All outlive the waiter. It advises sleep only if the caller `sleeps`.
  Waiter(const WaitTuning& tuning, transport::ControlPage& mine, bool sleeps)
      : tuning_(tuning), sleeps_(sleeps), seat_(mine) {}

  // There was something to do.
  void progressed() { polls_ = yields_ = 0; }
  // There was nothing. `awaitedHere(seat)`: does it wait for a rank on this core?
  template <class AwaitedHere>
  Advice pause(AwaitedHere&& awaitedHere) {
    if (polls_++ < tuning_.eager) return Advice::Poll;
    const std::uint32_t spun = polls_ - tuning_.eager - 1;
    if (spun == 0) seat_.take();
    if (polls_ <= tuning_.spins && (spun % kLookEvery != 0 || !awaitedHere(seat_))) {
      relax();
      return Advice::Poll;
    }
    return giveWay();
  }
  std::chrono::nanoseconds sleepTime();

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t kLookEvery = 4;

  Advice giveWay();

  const WaitTuning& tuning_;
  const bool sleeps_;
  Seat seat_;
  std::uint32_t polls_ = 0;
  std::uint32_t yields_ = 0;
  std::uint32_t avoidYield_ = 0;  // in so many waits
  Clock::time_point since_{};     // of the first yield
  Clock::time_point nextCheck_{};
  std::chrono::nanoseconds sleep_{0};
};

}  // namespace weft::engine
