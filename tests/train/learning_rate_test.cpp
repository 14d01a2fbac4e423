// SPDX-License-Identifier: Apache-2.0
#include "tools/train/learning_rate.h"

#include <gtest/gtest.h>

namespace weft::train {
namespace {

TEST(LearningRate, WarmsUpThenFallsToATenth) {
  EXPECT_DOUBLE_EQ(learningRate(2.0, 0, 4, 100), 0.5);
  EXPECT_DOUBLE_EQ(learningRate(2.0, 3, 4, 100), 2.0);
  EXPECT_DOUBLE_EQ(learningRate(2.0, 4, 4, 100), 2.0);
  EXPECT_NEAR(learningRate(2.0, 99, 4, 100), 0.2, 1e-12);
  for (int64_t step = 4; step < 99; ++step) {
    EXPECT_GT(learningRate(2.0, step, 4, 100), learningRate(2.0, step + 1, 4, 100));
  }
  EXPECT_DOUBLE_EQ(learningRate(2.0, 0, 0, 1), 2.0);
}

}  // namespace
}  // namespace weft::train
