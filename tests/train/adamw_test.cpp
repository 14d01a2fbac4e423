// SPDX-License-Identifier: Apache-2.0
#include "tools/train/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weft::train {
namespace {

// AdamW as the paper writes it (algorithm 2), for one weight in fp64.
class Reference {
 public:
  Reference(const AdamWSettings& settings, double decay) : s_(settings), decay_(decay) {}
  double step(double weight, double gradient, double rate) {
    ++t_;
    m_ = s_.beta1 * m_ + (1 - s_.beta1) * gradient;
    v_ = s_.beta2 * v_ + (1 - s_.beta2) * gradient * gradient;
    const double mean = m_ / (1 - std::pow(s_.beta1, t_));
    const double variance = v_ / (1 - std::pow(s_.beta2, t_));
    return weight - rate * (mean / (std::sqrt(variance) + s_.epsilon) + decay_ * weight);
  }

 private:
  AdamWSettings s_;
  double decay_, m_ = 0, v_ = 0;
  int t_ = 0;
};

TEST(AdamW, FollowsThePaper) {
  const AdamWSettings settings{.weightDecay = 0.3};
  AdamW optimizer(settings, {{0, 3, true}, {5, 4, false}}, 9);
  Reference decayed(settings, 0.3), plain(settings, 0);
  std::vector<float> weights(9, 0.5f), gradients(9);
  double expectedDecayed = 0.5, expectedPlain = 0.5;
  for (int step = 0; step < 200; ++step) {
    const double gradient = std::sin(step) + 0.2, rate = 1e-3 * (step % 7);
    std::fill(gradients.begin(), gradients.end(), static_cast<float>(gradient * 4));
    optimizer.step(weights, gradients, rate, 0.25);
    expectedDecayed = decayed.step(expectedDecayed, gradient, rate);
    expectedPlain = plain.step(expectedPlain, gradient, rate);
  }
  EXPECT_NEAR(weights[0], expectedDecayed, 2e-6);
  EXPECT_NEAR(weights[8], expectedPlain, 2e-6);
  EXPECT_EQ(weights[0], weights[2]);
  EXPECT_EQ(weights[3], 0.5f);  // in no range
  EXPECT_EQ(weights[4], 0.5f);
  EXPECT_GT(std::abs(expectedDecayed - expectedPlain), 0.01);
}

TEST(AdamW, NormIsThatOfAllValues) {
  for (const size_t n : {0u, 1u, 7u, 8u, 1003u}) {
    std::vector<float> values(n);
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      values[i] = 0.1f * static_cast<float>(i % 13) - 0.5f;
      sum += static_cast<double>(values[i]) * values[i];
    }
    EXPECT_NEAR(norm(values), std::sqrt(sum), 1e-12 * std::sqrt(sum));
  }
}

TEST(AdamW, LearningRateWarmsUpThenFallsToATenth) {
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
