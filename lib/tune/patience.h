// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>

#include "tune/stopwatch.h"

namespace weft::tune {

// Two threads that work side by side for so long and no longer: on a busy machine they are cut
// short. Patience begins when both are there, as a busy machine starts threads late.
class Patience {
 public:
  static constexpr double kNs = 30e6;

  void meet() {
    if (++present_ == 2) until_ = nowNs() + kNs;
    while (present_ < 2) std::this_thread::sleep_for(kNap);
  }

  // After a poll in vain, of which `polls` has the number. If the other one has been pushed off its
  // core, whoever naps meanwhile is given its own at once when the other comes back.
  bool goesOn(std::uint32_t* polls) {
    if (++*polls % 64 == 0 && nowNs() > until_) end();
    if (*polls % kLostPolls == 0) std::this_thread::sleep_for(kNap);
    return !isOver();
  }

  void end() { over_ = true; }
  bool isOver() const { return over_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kLostPolls = 2048;
  static constexpr std::chrono::microseconds kNap{20};

  std::atomic<int> present_{0};
  std::atomic<double> until_{std::numeric_limits<double>::infinity()};
  std::atomic<bool> over_{false};
};

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace weft::tune
