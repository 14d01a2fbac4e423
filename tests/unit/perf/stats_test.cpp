// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/stats.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::perf {
namespace {

TEST(Statistics, OneValueIsEverything) {
  const Statistics s = statisticsOf({5});
  for (double value : {s.min, s.max, s.mean, s.p50, s.p95, s.p99}) EXPECT_EQ(value, 5);
  EXPECT_EQ(s.deviation, 0);
  EXPECT_EQ(s.variationPercent(), 0);
}

TEST(Statistics, PercentilesAreNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Statistics s = statisticsOf(values);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.p50, 50);
  EXPECT_EQ(s.p95, 95);
  EXPECT_EQ(s.p99, 99);
  EXPECT_EQ(s.max, 100);
  EXPECT_DOUBLE_EQ(s.mean, 50.5);
}

TEST(Statistics, OneOutlierOfTwentyIsTheP99) {
  std::vector<double> values(19, 1.0);
  values.push_back(100);
  const Statistics s = statisticsOf(values);
  EXPECT_EQ(s.p95, 1);
  EXPECT_EQ(s.p99, 100);
}

TEST(Statistics, DeviationIsThePopulations) {
  const Statistics s = statisticsOf({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(s.deviation, 2);
  EXPECT_DOUBLE_EQ(s.variationPercent(), 40);
}

TEST(Average, OneNumberForAllRanks) {
  const std::vector<double> perRank = {3, 1, 8};
  EXPECT_EQ(averageOf(perRank, Average::Rank0), 3);
  EXPECT_EQ(averageOf(perRank, Average::Mean), 4);
  EXPECT_EQ(averageOf(perRank, Average::Min), 1);
  EXPECT_EQ(averageOf(perRank, Average::Max), 8);
}

TEST(Statistics, AnyPercentile) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  EXPECT_EQ(percentileOf(values, 0), 1);
  EXPECT_EQ(percentileOf(values, 7), 7);
  EXPECT_EQ(percentileOf(values, 99.9), 100);
  EXPECT_EQ(percentileOf(values, 100), 100);
  EXPECT_EQ(meanOf({1, 2, 6}), 3);
}

}  // namespace
}  // namespace weft::perf
