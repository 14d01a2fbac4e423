// SPDX-License-Identifier: Apache-2.0
#include "tools/train/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::train {
namespace {

constexpr RateSchedule kUsual{.peak = 2.0, .warmup = 4, .steps = 100};

TEST(LearningRate, WarmsUpThenFallsToATenth) {
  EXPECT_DOUBLE_EQ(learningRate(kUsual, 0), 0.5);
  EXPECT_DOUBLE_EQ(learningRate(kUsual, 3), 2.0);
  EXPECT_DOUBLE_EQ(learningRate(kUsual, 4), 2.0);
  EXPECT_NEAR(learningRate(kUsual, 99), 0.2, 1e-12);
  for (int64_t step = 4; step < 99; ++step)
    EXPECT_GT(learningRate(kUsual, step), learningRate(kUsual, step + 1));
  EXPECT_DOUBLE_EQ(learningRate({.peak = 2.0, .steps = 1}, 0), 2.0);
}

TEST(LearningRate, HoldsThenFallsToNothing) {
  RateSchedule schedule = kUsual;
  schedule.hold = 46;
  schedule.decay = Decay::kLinear;
  EXPECT_DOUBLE_EQ(learningRate(schedule, 49), 2.0);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 50), 2.0);
  EXPECT_NEAR(learningRate(schedule, 74), 2.0 * 25 / 49, 1e-12);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 99), 0.0);
  schedule.decay = Decay::kPoly;
  EXPECT_NEAR(learningRate(schedule, 74), 2.0 * std::sqrt(25.0 / 49), 1e-12);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 120), 0.0);
}

}  // namespace
}  // namespace weft::train
