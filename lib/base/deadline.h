// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include "base/text.h"

namespace weft::inline base {

// The moment at which a wait gives up. Every wait in weft takes one. It is a point on
// CLOCK_MONOTONIC (std::chrono::steady_clock), so that setting the clock neither shortens nor
// lengthens it. A value type, two instructions to copy.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // `ms` milliseconds from now; negative means already expired, huge values saturate at a century.
  static Deadline in(std::int64_t ms) {
    return in(std::chrono::milliseconds(std::clamp(ms, std::int64_t{0}, kCenturyMs)));
  }
  static Deadline in(Clock::duration span) { return Deadline(Clock::now() + span); }

  bool expired() const { return Clock::now() >= at_; }

  // Time left, never negative.
  Clock::duration remaining() const {
    return std::max(at_ - Clock::now(), Clock::duration::zero());
  }

  // Time left for poll(2): milliseconds rounded up, so that a wait of this length ends expired.
  int pollTimeoutMs() const {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(remaining()).count();
    return static_cast<int>(std::min<std::int64_t>(ms, std::numeric_limits<int>::max()));
  }

  // The sooner of the two.
  Deadline orSooner(Deadline other) const { return Deadline(std::min(at_, other.at_)); }

  Clock::time_point at() const { return at_; }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  static constexpr std::int64_t kCenturyMs = std::int64_t{100} * 366 * 24 * 3600 * 1000;
  Clock::time_point at_;
};

// "3.1 s", cut off.
inline std::string inSeconds(Deadline::Clock::duration span) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
  return text(ms / 1000, '.', ms % 1000 / 100, " s");
}

}  // namespace weft::inline base
