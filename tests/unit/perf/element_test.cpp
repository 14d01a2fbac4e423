// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weft::perf {
namespace {

// The value of a binary16 by its definition (IEEE 754-2008, 3.4).
double halfByDefinition(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) {
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Element, EveryHalfHasItsValue) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double expected = halfByDefinition(half);
    const double got = halfToFloat(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      EXPECT_EQ(got, expected) << bits;
      EXPECT_EQ(std::signbit(got), std::signbit(expected)) << bits;
    }
  }
}

TEST(Element, NarrowUndoesWiden) {
  for (int bits = 0; bits < 65536; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const Bfloat16 brain{static_cast<std::uint16_t>(bits)};
    if (std::isfinite(widen(half))) {
      EXPECT_EQ(narrow<Float16>(widen(half)).bits, half.bits);
    }
    if (std::isfinite(widen(brain))) {
      EXPECT_EQ(narrow<Bfloat16>(widen(brain)).bits, brain.bits);
    }
  }
}

TEST(Element, IntegersWrap) {
  EXPECT_EQ(narrow<std::int8_t>(300), 44);
  EXPECT_EQ(narrow<std::uint8_t>(0x1ff), 255);
  EXPECT_EQ(narrow<std::int32_t>(std::int64_t{1} << 31), std::numeric_limits<std::int32_t>::min());
}

}  // namespace
}  // namespace weft::perf
