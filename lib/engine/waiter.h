// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>

namespace weft {

// How a rank waits on this machine; equal for all waits of a communicator.
struct WaitTuning {
  std::uint32_t spins = 1000;               // polls before the core is offered to others
  std::chrono::microseconds yieldFor{500};  // then polls with sched_yield, for this long
  std::chrono::milliseconds sleepMax{20};   // then sleeps on the doorbell, 1 ms doubling up to this
};

// Spin for ranks that have a core each; with more ranks than cores a spinning rank only delays the
// one that it waits for, so yield nearly at once. `spinUs` < 0: decide by the number of ranks and
// cores.
WaitTuning tuneWaiting(std::uint32_t localRanks, std::uint32_t cores, std::int64_t spinUs);

// One wait, from the moment when there is nothing to do until there is: spin, yield, sleep. Makes
// no system call while it spins.
class Waiter {
 public:
  enum class Advice : std::uint8_t {
    Poll,   // look again
    Check,  // look again, and look for trouble: about once a millisecond
    Sleep,  // as Check; then sleep for sleepTime() unless there is something to do
  };

  explicit Waiter(const WaitTuning& tuning) : tuning_(tuning) {}

  void progressed() { polls_ = 0; }
  Advice pause() {
    if (++polls_ <= tuning_.spins) {
      if (polls_ > kEagerPolls) relax();
      return Advice::Poll;
    }
    return yield();
  }
  std::chrono::nanoseconds sleepTime();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t kEagerPolls = 32;  // a peer on its own core answers within these

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  Advice yield();

  const WaitTuning& tuning_;
  std::uint32_t polls_ = 0;
  Clock::time_point since_{};  // of the first yield
  Clock::time_point nextCheck_{};
  std::chrono::nanoseconds sleep_{0};
};

}  // namespace weft
