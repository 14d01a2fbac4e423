// SPDX-License-Identifier: Apache-2.0
#include "engine/waiter.h"

#include <algorithm>

#include "plan/polls.h"

namespace weft::engine {
namespace {

constexpr std::chrono::milliseconds kCheckEvery{1};
constexpr std::uint32_t kSpinUs = 50;  // longer than any hand-over between two cores
// Ranks do not keep a core so long from one that yields, but a scheduler's slice is longer.
constexpr std::chrono::microseconds kOtherProcesses{500};
// Nobody rings the doorbell for what is done meanwhile.
constexpr std::chrono::microseconds kMeanwhileSleep{200};
constexpr std::uint32_t kAvoidWaits = 1000;  // then a yield may find out whether they are gone

}  // namespace

WaitTuning tuneWaiting(std::uint32_t localRanks, std::uint32_t cores, std::int64_t spinUs) {
  WaitTuning tuning;
  tuning.crowded = localRanks > cores;
  tuning.spins = kSpinUs * plan::kPollsPerMicrosecond;
  if (tuning.crowded) {
    tuning.eager = 0;
    tuning.spins = plan::pollsOnSharedCore(localRanks, cores);
  }
  if (spinUs >= 0) tuning.spins = static_cast<std::uint32_t>(spinUs) * plan::kPollsPerMicrosecond;
  tuning.respins = std::min(tuning.respins, tuning.spins);
  return tuning;
}

Waiter::Advice Waiter::giveWay() {
  polls_ = tuning_.spins - tuning_.respins;
  if (yields_++ == 0) {
    since_ = Clock::now();
    nextCheck_ = since_ + kCheckEvery;
    sleep_ = kCheckEvery;
    if (avoidYield_ != 0) --avoidYield_;
  }
  if (tuning_.meanwhile.call != nullptr) tuning_.meanwhile.call(tuning_.meanwhile.context);
  if (avoidYield_ != 0 && sleeps_) return Advice::Sleep;
  const Clock::time_point before = Clock::now();
  sched_yield();
  seat_.take();
  const Clock::time_point now = Clock::now();
  if (!tuning_.crowded && now - before > kOtherProcesses) avoidYield_ = kAvoidWaits;
  if (now - since_ > tuning_.yieldFor && sleeps_) return Advice::Sleep;
  if (now < nextCheck_) return Advice::Poll;
  nextCheck_ = now + kCheckEvery;
  return Advice::Check;
}

std::chrono::nanoseconds Waiter::sleepTime() {
  if (tuning_.meanwhile.call != nullptr) return kMeanwhileSleep;
  const std::chrono::nanoseconds now = sleep_;
  sleep_ = std::min<std::chrono::nanoseconds>(sleep_ * 2, tuning_.sleepMax);
  return now;
}

}  // namespace weft::engine
