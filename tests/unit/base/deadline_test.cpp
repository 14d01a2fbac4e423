// SPDX-License-Identifier: Apache-2.0
#include "base/deadline.h"

#include <gtest/gtest.h>

#include <thread>

namespace weft::inline base {
namespace {

using std::chrono::milliseconds;

TEST(Deadline, ExpiresAfterItsSpanAndNotBefore) {
  const auto start = Deadline::Clock::now();
  const Deadline deadline = Deadline::in(20);
  EXPECT_FALSE(deadline.expired());
  while (!deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_GE(Deadline::Clock::now() - start, milliseconds(20));
  EXPECT_EQ(deadline.remaining(), Deadline::Clock::duration::zero());
  EXPECT_EQ(deadline.pollTimeoutMs(), 0);
}

TEST(Deadline, NegativeIsExpiredAndHugeSaturates) {
  EXPECT_TRUE(Deadline::in(-5).expired());
  const Deadline never = Deadline::in(std::numeric_limits<std::int64_t>::max());
  EXPECT_FALSE(never.expired());
  EXPECT_EQ(never.pollTimeoutMs(), std::numeric_limits<int>::max());
}

TEST(Deadline, PollTimeoutRoundsUpSoThatTheWaitEndsExpired) {
  const Deadline deadline = Deadline::in(std::chrono::microseconds(500));
  EXPECT_EQ(deadline.expired() ? 1 : deadline.pollTimeoutMs(), 1);
}

TEST(Deadline, OrSoonerPicksTheEarlier) {
  const Deadline soon = Deadline::in(1000);
  const Deadline late = Deadline::in(5000);
  EXPECT_EQ(soon.orSooner(late).at(), soon.at());
  EXPECT_EQ(late.orSooner(soon).at(), soon.at());
}

}  // namespace
}  // namespace weft::inline base
