// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace weft::accuracy {
namespace {

TEST(Judge, AnErrorIsAShareOfWhatWasMeasured) {
  EXPECT_DOUBLE_EQ(errorOf({150}, {100}), 0.5);
  EXPECT_DOUBLE_EQ(errorOf({50}, {100}), 0.5);
  EXPECT_DOUBLE_EQ(errorOf({100, 200, 100}, {100, 200, 400}), 0);
}

TEST(Judge, QuantilesLieBetweenTheNearestValues) {
  EXPECT_DOUBLE_EQ(quantile({}, 0.5), 0);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7);
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.9), 9);
  EXPECT_DOUBLE_EQ(quantile({0, 10, 20}, 1), 20);
}

TEST(Judge, RatiosAreTakenTurnByTurn) {
  // A slow turn of everybody changes nothing.
  EXPECT_DOUBLE_EQ(ratioOf({10, 100, 12}, {5, 50, 6}), 2);
  EXPECT_DOUBLE_EQ(ratioOf({10, 20, 30}, {10}), 1);
}

TEST(Judge, AChoiceThatIsTheBestCostsNothing) {
  const Regret regret = regretOf({{10, 11, 10, 11}, {20, 21, 20, 21}});
  EXPECT_DOUBLE_EQ(regret.factor, 1);
  EXPECT_EQ(regret.best, 0u);
  EXPECT_DOUBLE_EQ(regretOf({{5}}).factor, 1);
}

TEST(Judge, AWorseChoiceCostsTheRatio) {
  const Regret regret = regretOf({{20, 40, 20, 40}, {10, 20, 10, 20}, {15, 30, 15, 30}});
  EXPECT_DOUBLE_EQ(regret.factor, 2);
  EXPECT_EQ(regret.best, 1u);
  EXPECT_DOUBLE_EQ(regretOf({{30}, {20}}).factor, 1.5);
}

// Forms that are equal but for noise: what is quickest in the one half is no quicker in the other,
// so the noise that makes it the best does not count as regret.
TEST(Judge, NoiseIsNoRegret) {
  const Regret regret = regretOf({{10, 10, 10, 10}, {8, 12, 8, 12}});
  EXPECT_DOUBLE_EQ(regret.factor, std::sqrt(10.0 / 12.0));
  std::vector<double> many;
  std::uint32_t state = 1;
  const auto noisy = [&] {
    Turns turns;
    for (int i = 0; i < 6; ++i) {
      state = state * 1664525u + 1013904223u;
      turns.push_back(100 + static_cast<double>(state >> 24) / 16);
    }
    return turns;
  };
  for (int point = 0; point < 500; ++point)
    many.push_back(regretOf({noisy(), noisy(), noisy(), noisy()}).factor);
  EXPECT_NEAR(geometricMean(many), 1, 0.005);
}

TEST(Judge, ManyPointsAreCountedTogether) {
  const Regrets regrets = regretsOf({1, 1, 1.21, 1});
  EXPECT_EQ(regrets.points, 4u);
  EXPECT_DOUBLE_EQ(regrets.mean, std::pow(1.21, 0.25));
  EXPECT_DOUBLE_EQ(regrets.most, 1.21);
  EXPECT_DOUBLE_EQ(regrets.within, 0.75);
  EXPECT_DOUBLE_EQ(regretsOf({}).mean, 1);
  const Errors errors = errorsOf({0.1, 0.3, 0.2});
  EXPECT_DOUBLE_EQ(errors.median, 0.2);
  EXPECT_DOUBLE_EQ(Errors{}.insideShare(), 0);
}

}  // namespace
}  // namespace weft::accuracy
