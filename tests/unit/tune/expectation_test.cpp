// SPDX-License-Identifier: Apache-2.0
#include "tune/expectation.h"

#include <gtest/gtest.h>

namespace weft::tune {
namespace {

constexpr Expected kExpected{1000, 3000};

// How often they come to disagree when so many calls take that long.
int disagreements(Expectation* expectation, std::uint32_t calls, double tookNs) {
  int times = 0;
  for (std::uint32_t i = 0; i < calls; ++i) times += expectation->disagrees(kExpected, tookNs);
  return times;
}

TEST(Expectation, IsDisappointedOnceByManyCallsInARow) {
  for (const double tookNs : {499.0, 6001.0}) {
    Expectation expectation;
    EXPECT_EQ(disagreements(&expectation, Expectation::kTimed - 1, tookNs), 0);
    EXPECT_EQ(disagreements(&expectation, 1000, tookNs), 1);
  }
}

TEST(Expectation, OneCallThatTakesItsTimeWillDo) {
  Expectation expectation;
  for (const double tookNs : {500.0, 1000.0, 3000.0, 6000.0}) {
    EXPECT_EQ(disagreements(&expectation, Expectation::kTimed - 1, 1e6), 0);
    EXPECT_EQ(disagreements(&expectation, 1, tookNs), 0);
    EXPECT_EQ(disagreements(&expectation, Expectation::kTimed - 1, 1), 0);
    EXPECT_EQ(disagreements(&expectation, 1, tookNs), 0);
  }
}

TEST(Expectation, WithoutOneNothingDisagrees) {
  Expectation expectation;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(expectation.disagrees({}, 1e9));
}

TEST(Expectation, OneCallInSixteenIsTimed) {
  Expectation expectation;
  int due = 0;
  for (std::uint32_t i = 0; i < 10 * Expectation::kEvery; ++i) due += expectation.isDue();
  EXPECT_EQ(due, 10);
}

}  // namespace
}  // namespace weft::tune
