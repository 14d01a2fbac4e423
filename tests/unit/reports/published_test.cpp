// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/published.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tools/train/reports/price.h"

namespace weft::train {
namespace {

// All seven rows of the post on Trainium, from the price of an instance and the throughput.
TEST(Published, TokensPerDollarAreReproducedToTheToken) {
  int rows = 0;
  for (const char* recipe : {"pythia-6.9b-trn1", "neox-20b-trn1"}) {
    const PublishedJob& job = *publishedJob(recipe);
    EXPECT_EQ(job.usdPerHour, priceOf("trn1.32xlarge-reserved").usdPerHour);
    for (const PublishedRow& row : job.rows) {
      const double tokensPerSecond = row.sequencesPerSecond * static_cast<double>(job.length);
      EXPECT_EQ(std::round(tokensPerUsd(tokensPerSecond, job.usdPerHour * row.nodes)),
                row.tokensPerUsd)
          << recipe << " on " << row.nodes;
      ++rows;
    }
  }
  EXPECT_EQ(rows, 7);
}

TEST(Published, EfficienciesAreThoseOfThePosts) {
  const struct {
    const char* recipe;
    int times;
    double percent;
  } cases[] = {{"bert-large-phase1", 1, 100},   {"bert-large-phase1", 2, 98.04},
               {"bert-large-phase1", 4, 95.88}, {"bert-large-phase1", 8, 90.39},
               {"bert-1.5b-dl1", 8, 85.1},      {"bert-1.5b-dl1", 16, 82.7},
               {"pythia-6.9b-trn1", 4, 86.1},   {"neox-20b-trn1", 16, 97.4}};
  for (const auto& [recipe, times, percent] : cases)
    EXPECT_NEAR(100 * *publishedEfficiency(publishedJob(recipe), times), percent, 0.05) << recipe;
  EXPECT_FALSE(publishedEfficiency(publishedJob("bert-1.5b-dl1"), 2));
  EXPECT_FALSE(publishedEfficiency(publishedJob("gptj-smp"), 1)) << "has no table";
}

TEST(Price, IsDollarsOrAName) {
  EXPECT_EQ(priceOf("21.5").usdPerHour, 21.5);
  EXPECT_EQ(priceOf("dl1.24xlarge").usdPerHour, 13.11);
  for (const char* text : {"", "0", "-1", "nan", "inf", "7 dollars", "1e999", "p5.48xlarge"}) {
    try {
      priceOf(text);
      FAIL() << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what())
                    .find("is neither dollars an hour and instance, such as "
                          "21.5, nor one of dl1.24xlarge, p4d.24xlarge, "),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(Price, ATargetIsReachedByValidationOrElseByTheMeanOfTenSteps) {
  RunRecord run;
  for (int i = 0; i < 40; ++i)
    run.steps.push_back({i, i == 3 ? 0.0 : 5 - 0.1 * i, 1, 1e-3, 1, 0, 2.0 * i});
  const auto reached = whenReached(run, 3);
  ASSERT_TRUE(reached) << "one low step among ten is not enough";
  EXPECT_EQ(reached->step, 25);
  EXPECT_EQ(reached->elapsedSeconds, 50);
  EXPECT_NEAR(reached->loss, 2.95, 1e-9);
  EXPECT_FALSE(whenReached(run, 0.5));
  run.evaluations = {{9, {4}, 21}, {19, {2.5}, 42}, {29, {2}, 63}};
  EXPECT_EQ(whenReached(run, 3)->step, 19);
  EXPECT_EQ(whenReached(run, 3)->elapsedSeconds, 42);
  EXPECT_FALSE(whenReached(run, 1.9)) << "training alone proves nothing then";
}

}  // namespace
}  // namespace weft::train
