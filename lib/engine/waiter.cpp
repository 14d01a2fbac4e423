// SPDX-License-Identifier: Apache-2.0
#include "engine/waiter.h"

#include <algorithm>

namespace weft {
namespace {

constexpr std::chrono::milliseconds kCheckEvery{1};
constexpr std::uint32_t kSpinsPerMicrosecond = 20;  // a poll with a pause takes about 50 ns
constexpr std::uint32_t kSpinUs = 50;               // longer than any hand-over between two cores

}  // namespace

WaitTuning tuneWaiting(std::uint32_t localRanks, std::uint32_t cores, std::int64_t spinUs) {
  WaitTuning tuning;
  if (spinUs >= 0)
    tuning.spins = static_cast<std::uint32_t>(spinUs) * kSpinsPerMicrosecond;
  else
    tuning.spins = localRanks <= cores ? kSpinUs * kSpinsPerMicrosecond : 1;
  return tuning;
}

Waiter::Advice Waiter::yield() {
  if (polls_ == tuning_.spins + 1) {
    since_ = Clock::now();
    nextCheck_ = since_ + kCheckEvery;
    sleep_ = kCheckEvery;
  }
  sched_yield();
  const Clock::time_point now = Clock::now();
  if (now - since_ > tuning_.yieldFor) return Advice::Sleep;
  if (now < nextCheck_) return Advice::Poll;
  nextCheck_ = now + kCheckEvery;
  return Advice::Check;
}

std::chrono::nanoseconds Waiter::sleepTime() {
  const std::chrono::nanoseconds now = sleep_;
  sleep_ = std::min<std::chrono::nanoseconds>(sleep_ * 2, tuning_.sleepMax);
  return now;
}

}  // namespace weft
