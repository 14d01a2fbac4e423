// SPDX-License-Identifier: Apache-2.0
#include "tools/train/loss_scale.h"

#include <gtest/gtest.h>

namespace weft::train {
namespace {

TEST(LossScaleOfFp16, DoublesAfterSoManyGoodStepsInARow) {
  LossScale scale = LossScale::dynamic(1024, 3);
  for (int i = 0; i < 2; ++i) scale.stepped();
  EXPECT_EQ(scale.value(), 1024);
  scale.stepped();
  EXPECT_EQ(scale.state(), (LossScale::State{2048, 0, 0}));
  scale.stepped();
  EXPECT_TRUE(scale.overflowed());  // and the count begins anew
  EXPECT_EQ(scale.state(), (LossScale::State{1024, 0, 1}));
  for (int i = 0; i < 3; ++i) scale.stepped();
  EXPECT_EQ(scale.value(), 2048);
  EXPECT_EQ(scale.state().skippedSteps, 1);
}

TEST(LossScaleOfFp16, StaysBetweenItsEnds) {
  LossScale scale = LossScale::dynamic(3, 1);
  EXPECT_TRUE(scale.overflowed());
  EXPECT_TRUE(scale.overflowed());
  EXPECT_EQ(scale.value(), LossScale::kLeast);
  EXPECT_FALSE(scale.overflowed()) << "nothing smaller is left";
  LossScale large = LossScale::dynamic(LossScale::kMost, 1);
  large.stepped();
  EXPECT_EQ(large.value(), LossScale::kMost);
}

TEST(LossScaleOfFp16, IsFixedWhereItIsGiven) {
  LossScale scale = LossScale::fixed(96);
  for (int i = 0; i < 5000; ++i) scale.stepped();
  EXPECT_TRUE(scale.overflowed());
  EXPECT_EQ(scale.value(), 96);
  scale.resume({4096, 7, 12});
  EXPECT_EQ(scale.state(), (LossScale::State{96, 7, 12}));
}

TEST(LossScaleOfFp16, GoesOnWhereItStood) {
  LossScale scale = LossScale::dynamic(65536, 3);
  scale.resume({512, 2, 7});
  scale.stepped();
  EXPECT_EQ(scale.state(), (LossScale::State{1024, 0, 7}));
}

}  // namespace
}  // namespace weft::train
