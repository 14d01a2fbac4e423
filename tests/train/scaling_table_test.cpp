// SPDX-License-Identifier: Apache-2.0
#include "tools/train/scaling_table.h"

#include <gtest/gtest.h>

namespace weft::train {
namespace {

// A machine whose second round has half the cores.
const ScalingRounds kOne{1, {100, 50, 100}, {100, 50, 100}, {0, 0, 0}};
const ScalingRounds kTwo{2, {190, 95, 190}, {200, 100, 200}, {3, 9, 2}};

TEST(ScalingTable, RatesAreComparedWithinARound) {
  EXPECT_EQ(efficiencies(kTwo, kOne), (std::vector<double>{95, 95, 95}));
  EXPECT_EQ(communicationEfficiencies(kTwo), (std::vector<double>{95, 95, 95}));
  EXPECT_EQ(scalingRow(kTwo, kOne),
            "    2    190.00      95.00-190.00      95.00      95.0 %     95.0-95.0            "
            "200.00      95.0 %     95.0-95.0        3.00\n");
}

TEST(ScalingTable, OneRankIsTheMeasure) {
  ScalingRounds other = kOne;
  other.together = {1, 2, 3};
  EXPECT_EQ(efficiencies(other, kOne), (std::vector<double>{100, 100, 100}));
  EXPECT_EQ(communicationEfficiencies(other), (std::vector<double>{100, 100, 100}));
}

TEST(ScalingTable, SaysWhatTheNoiseHides) {
  EXPECT_NE(scalingNoise({kOne, kTwo})
                .find("by up to 50.0 % from round to round (with 1 rank): too "
                      "noisy to tell"),
            std::string::npos)
      << scalingNoise({kOne, kTwo});
  EXPECT_EQ(scalingNoise({{1, {100, 101, 102}, {100, 101, 102}, {}}}),
            "# the same run differed by up to 2.0 % from round to round (with 1 rank)\n");
}

}  // namespace
}  // namespace weft::train
