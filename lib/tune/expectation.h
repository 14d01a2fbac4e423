// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace weft::tune {

// What a call should take by the model; the least and the most where it depends on the callers'
// buffers. 0: the model does not say.
struct Expected {
  double leastNs = 0;
  double mostNs = 0;
};

// Whether calls take what the model of this machine says. One call may wait for a late rank, or on
// a busy core. So they disagree where all of many calls in a row took more than twice as long, or
// less than half. One thread at a time.
class Expectation {
 public:
  // Is the next call to be timed? Few are: reading the clock twice costs a short call 5 %.
  bool isDue() { return ++calls_ % kEvery == 0; }

  // One call; true where the last kTimed now disagree, once.
  bool disagrees(const Expected& expected, double tookNs) {
    if (expected.leastNs <= 0) return false;
    const bool longer = tookNs > kFactor * expected.mostNs;
    const bool shorter = tookNs < expected.leastNs / kFactor;
    longer_ = longer ? longer_ + 1 : 0;
    shorter_ = shorter ? shorter_ + 1 : 0;
    return longer_ == kTimed || shorter_ == kTimed;
  }

  static constexpr std::uint32_t kEvery = 16, kTimed = 64;

 private:
  static constexpr double kFactor = 2;
  std::uint32_t calls_ = 0, longer_ = 0, shorter_ = 0;
};

}  // namespace weft::tune
