// SPDX-License-Identifier: Apache-2.0
#include "tools/train/class_scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::train {
namespace {

TEST(ClassScores, AreJudgedByTheirLabels) {
  Batch batch;
  batch.samples = 4;
  batch.labels = {0, 2, 1, Batch::kNoTarget};
  const std::vector<float> scores{1, 0, 0, 3, 1, 2, 500, 500, -500, 9, 9, 9};
  const std::vector<ClassSums> all = judged(scores, batch);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_NEAR(all[0].loss, std::log(1 + 2 * std::exp(-1.0)), 1e-12);
  EXPECT_EQ(all[0].right, 1);
  EXPECT_NEAR(all[1].loss, std::log(std::exp(1.0) + std::exp(-1.0) + 1), 1e-12);
  EXPECT_EQ(all[1].right, 0);
  EXPECT_NEAR(all[2].loss, std::log(2.0), 1e-12) << "without overflow";
  EXPECT_EQ(all[2].right, 0) << "of equal ones the first counts";
  EXPECT_EQ(all[3].samples, 0);
  ClassSums sums;
  for (const ClassSums& each : all) sums.add(each);
  EXPECT_NEAR(*sums.mean().accuracy, 1.0 / 3, 1e-12);
  EXPECT_NEAR(sums.mean().loss, (all[0].loss + all[1].loss + all[2].loss) / 3, 1e-12);
}

}  // namespace
}  // namespace weft::train
