// SPDX-License-Identifier: Apache-2.0
#include "reduce/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace weft::reduce {
namespace {

ExactSum sumOf(const std::vector<double>& addends) {
  ExactSum sum;
  for (double x : addends) sum.add(x);
  return sum;
}

// Squares of floats of all sizes.
std::vector<double> randomSquares(size_t n) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> exponent(-149, 127);
  std::uniform_real_distribution<float> mantissa(1, 2);
  std::vector<double> squares(n);
  for (double& x : squares) {
    const double root = std::ldexp(mantissa(random), exponent(random));
    x = root * root;
  }
  return squares;
}

TEST(ExactSum, OfNothingIsZero) { EXPECT_EQ(0, ExactSum().value()); }

TEST(ExactSum, OfOneIsItself) {
  for (double x : randomSquares(1000)) {
    EXPECT_EQ(x, sumOf({x}).value());
    EXPECT_EQ(x, sumOf({0.0, x}).value());
  }
  EXPECT_EQ(0x1p-298, sumOf({0x1p-298}).value());  // the square of the smallest float
  const double most = static_cast<double>(std::numeric_limits<float>::max());
  EXPECT_EQ(1024 * most * most, sumOf({1024 * most * most}).value());
}

TEST(ExactSum, DoesNotDependOnOrderOrGrouping) {
  std::vector<double> squares = randomSquares(5000);
  const ExactSum expected = sumOf(squares);
  std::mt19937 random(2);
  for (size_t parts : {2u, 3u, 7u}) {
    std::shuffle(squares.begin(), squares.end(), random);
    std::vector<ExactSum> sums(parts);
    for (size_t i = 0; i < squares.size(); ++i) sums[i % parts].add(squares[i]);
    for (size_t part = 1; part < parts; ++part) sums[0].add(sums[part]);
    EXPECT_EQ(expected.value(), sums[0].value());
  }
}

TEST(ExactSum, KeepsWhatDoublesLose) {
  std::vector<double> addends(4097, 0x1p-60);  // each is lost beside 1
  addends[0] = 1;
  EXPECT_EQ(1 + 0x1p-48, sumOf(addends).value());
}

TEST(ExactSum, RoundsOnceToNearestEven) {
  EXPECT_EQ(1, sumOf({1, 0x1p-53}).value());
  EXPECT_EQ(1 + 0x1p-52, sumOf({1, 0x1p-53, 0x1p-250}).value());
  EXPECT_EQ(1 + 0x1p-51, sumOf({1 + 0x1p-52, 0x1p-53}).value());
  EXPECT_EQ(0x1p33 + 0x1p-19, sumOf({0x1p33, 0x1p-20, 0x1p-300}).value());
}

TEST(ExactSum, SaysThatSomethingWasNotFinite) {
  for (double x : {std::numeric_limits<double>::infinity(),
                   std::numeric_limits<double>::quiet_NaN(), std::ldexp(1.0, 1000)}) {
    EXPECT_TRUE(std::isnan(sumOf({1, x, 1}).value()));
    ExactSum sum = sumOf({1});
    sum.add(sumOf({x}));
    EXPECT_TRUE(std::isnan(sum.value()));
  }
}

}  // namespace
}  // namespace weft::reduce
