// SPDX-License-Identifier: Apache-2.0
// The rules that reduce.h promises, with the expected bits written out; and all 16-bit floats.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "reduce/reduce.h"
#include "reference.h"
#include "target_test.h"

namespace weft::reduce {
namespace {

using reference::BFloat;
using reference::Half;

class SpecialValueTest : public TargetTest {};
WEFT_FOR_EACH_TARGET(SpecialValueTest);

// Folds a and b at every position of an array; they must give the same bits at each.
template <class T>
T foldEverywhere(RedOp op, T a, T b, uint64_t divisor = 1) {
  constexpr size_t kCount = 201;
  const std::vector<T> as(kCount, a), bs(kCount, b);
  const void* const sources[] = {as.data(), bs.data()};
  std::vector<T> results(kCount);
  foldKernel(reference::dtypeOf<T>(), op)(results.data(), sources, 2, kCount, divisor);
  for (const T& x : results) EXPECT_EQ(0, std::memcmp(&x, &results[0], sizeof(T)));
  return results[0];
}

uint32_t foldBits(RedOp op, uint32_t a, uint32_t b) {
  return std::bit_cast<uint32_t>(
      foldEverywhere(op, std::bit_cast<float>(a), std::bit_cast<float>(b)));
}

template <class T>
uint16_t foldSmall(RedOp op, uint16_t a, uint16_t b, uint64_t divisor = 1) {
  return foldEverywhere(op, T{a}, T{b}, divisor).bits;
}

constexpr uint32_t kNaN = 0x7FC00000, kInf = 0x7F800000, kMinusInf = 0xFF800000;
constexpr uint32_t kZero = 0, kMinusZero = 0x80000000, kOne = 0x3F800000;
constexpr uint32_t kNaNs[] = {0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x7FABCDEF};

TEST_P(SpecialValueTest, AnyNaNGivesTheOneNaN) {
  for (RedOp op : {RedOp::Sum, RedOp::Prod, RedOp::Max, RedOp::Min, RedOp::Avg}) {
    for (uint32_t nan : kNaNs) {
      for (uint32_t other : {kNaN, kInf, kMinusInf, kZero, kMinusZero, kOne, nan}) {
        EXPECT_EQ(kNaN, foldBits(op, nan, other)) << name(op);
        EXPECT_EQ(kNaN, foldBits(op, other, nan)) << name(op);
      }
    }
  }
}

TEST_P(SpecialValueTest, InvalidOperationsGiveTheOneNaN) {
  EXPECT_EQ(kNaN, foldBits(RedOp::Sum, kInf, kMinusInf));
  EXPECT_EQ(kNaN, foldBits(RedOp::Prod, kInf, kMinusZero));
  EXPECT_EQ(0x7E00, foldSmall<Half>(RedOp::Sum, 0x7C00, 0xFC00));
  EXPECT_EQ(0x7FC0, foldSmall<BFloat>(RedOp::Sum, 0x7F80, 0xFF80));
}

TEST_P(SpecialValueTest, ZerosAreOrdered) {
  EXPECT_EQ(kZero, foldBits(RedOp::Max, kZero, kMinusZero));
  EXPECT_EQ(kZero, foldBits(RedOp::Max, kMinusZero, kZero));
  EXPECT_EQ(kMinusZero, foldBits(RedOp::Max, kMinusZero, kMinusZero));
  EXPECT_EQ(kMinusZero, foldBits(RedOp::Min, kZero, kMinusZero));
  EXPECT_EQ(kMinusZero, foldBits(RedOp::Min, kMinusZero, kZero));
  EXPECT_EQ(kMinusZero, foldBits(RedOp::Sum, kMinusZero, kMinusZero));
  EXPECT_EQ(kZero, foldBits(RedOp::Sum, kMinusZero, kZero));
}

TEST_P(SpecialValueTest, DenormalsAreKept) {
  EXPECT_EQ(3u, foldBits(RedOp::Sum, 1, 2));
  EXPECT_EQ(3, foldSmall<BFloat>(RedOp::Sum, 1, 2));
  EXPECT_EQ(3, foldSmall<Half>(RedOp::Sum, 1, 2));
}

// 1 + 2^-8 lies halfway between two bfloat16, 1 + 2^-11 between two halves.
TEST_P(SpecialValueTest, HalfwayGoesToEven) {
  EXPECT_EQ(0x3F80, foldSmall<BFloat>(RedOp::Sum, 0x3F80, 0x3B80));
  EXPECT_EQ(0x3F82, foldSmall<BFloat>(RedOp::Sum, 0x3F81, 0x3B80));
  EXPECT_EQ(0x3C00, foldSmall<Half>(RedOp::Sum, 0x3C00, 0x1000));
  EXPECT_EQ(0x3C02, foldSmall<Half>(RedOp::Sum, 0x3C01, 0x1000));
}

TEST_P(SpecialValueTest, OverflowGoesToInfinity) {
  EXPECT_EQ(0x7F80, foldSmall<BFloat>(RedOp::Sum, 0x7F7F, 0x7F7F));
  EXPECT_EQ(0x7C00, foldSmall<Half>(RedOp::Sum, 0x7BFF, 0x4C00));  // 65504 + 16, the halfway case
  EXPECT_EQ(0x7BFF, foldSmall<Half>(RedOp::Sum, 0x7BFF, 0x4BFF));
  EXPECT_EQ(0x7BFF,
            foldSmall<Half>(RedOp::Avg, 0x7BFF, 0x7BFF, 2));  // the sum itself does not overflow
}

// 256 + 1 + 1: rounding after each addition would stay at 256.
TEST_P(SpecialValueTest, SixteenBitSumsRoundOnce) {
  const uint16_t big = 0x4380, one = 0x3F80;
  const void* const sources[] = {&big, &one, &one};
  uint16_t sum = 0;
  foldKernel(DType::BF16, RedOp::Sum)(&sum, sources, 3, 1, 1);
  EXPECT_EQ(0x4381, sum);
}

TEST_P(SpecialValueTest, IntegersWrapAndDivideTowardZero) {
  EXPECT_EQ(-128, foldEverywhere<int8_t>(RedOp::Sum, 127, 1));
  EXPECT_EQ(-2, foldEverywhere<int8_t>(RedOp::Prod, 127, 2));
  EXPECT_EQ(INT32_MIN, foldEverywhere<int32_t>(RedOp::Sum, INT32_MAX, 1));
  EXPECT_EQ(INT64_MIN, foldEverywhere<int64_t>(RedOp::Sum, INT64_MAX, 1));
  EXPECT_EQ(-3, foldEverywhere<int32_t>(RedOp::Avg, -3, -4, 2));
  EXPECT_EQ(-3, foldEverywhere<int64_t>(RedOp::Avg, -3, -4, 2));
  EXPECT_EQ(0, foldEverywhere<int8_t>(RedOp::Avg, -100, -20, 200));
}

TEST_P(SpecialValueTest, BitsAreThoseOfTheLanguage) {
  EXPECT_EQ(0x28, foldEverywhere<uint8_t>(RedOp::Band, 0xA9, 0x3C));
  EXPECT_EQ(0xBD, foldEverywhere<uint8_t>(RedOp::Bor, 0xA9, 0x3C));
  EXPECT_EQ(0x95, foldEverywhere<uint8_t>(RedOp::Bxor, 0xA9, 0x3C));
  EXPECT_EQ(-8, foldEverywhere<int32_t>(RedOp::Band, -1, -8));
  EXPECT_EQ(INT64_MIN | 5, foldEverywhere<int64_t>(RedOp::Bor, INT64_MIN, 5));
  EXPECT_EQ(UINT64_MAX, foldEverywhere<uint64_t>(RedOp::Bxor, UINT64_MAX << 32, UINT32_MAX));
}

TEST_P(SpecialValueTest, OneSourceIsACopyOfTheBits) {
  const uint32_t payload = 0xFF812345;
  const void* const source = &payload;
  uint32_t copy = 0;
  foldKernel(DType::F32, RedOp::Sum)(&copy, &source, 1, 1, 1);
  EXPECT_EQ(payload, copy);
}

// Each of the 65536 values with partners that make it round up, down, to even, over- and underflow.
template <class T>
void checkAllValues(RedOp op, uint16_t partner, uint64_t divisor) {
  std::vector<std::vector<T>> sources(2, std::vector<T>(65536, T{partner}));
  for (size_t i = 0; i < 65536; ++i) sources[0][i] = T{static_cast<uint16_t>(i)};
  const std::vector<T> expected = reference::folded(op, sources, divisor);
  const void* const src[] = {sources[0].data(), sources[1].data()};
  std::vector<T> got(65536);
  foldKernel(reference::dtypeOf<T>(), op)(got.data(), src, 2, 65536, divisor);
  for (size_t i = 0; i < 65536; ++i) {
    ASSERT_EQ(expected[i].bits, got[i].bits)
        << name(reference::dtypeOf<T>()) << ' ' << name(op) << " of " << i << " and " << partner;
  }
}

constexpr uint16_t kHalfPartners[] = {0x0000, 0x0001, 0x03FF, 0x0401, 0x1000,
                                      0x3555, 0x3C01, 0x7BFF, 0x8001, 0xB812};
constexpr uint16_t kBFloatPartners[] = {0x0000, 0x0001, 0x007F, 0x0081, 0x3B80,
                                        0x3EAB, 0x3F81, 0x7F7F, 0x8001, 0xBF12};

TEST_P(SpecialValueTest, AllSixteenBitFloatsRoundRight) {
  for (uint16_t partner : kHalfPartners) {
    checkAllValues<Half>(RedOp::Sum, partner, 1);
    checkAllValues<Half>(RedOp::Prod, partner, 1);
    checkAllValues<Half>(RedOp::Avg, partner, 3);
  }
  for (uint16_t partner : kBFloatPartners) {
    checkAllValues<BFloat>(RedOp::Sum, partner, 1);
    checkAllValues<BFloat>(RedOp::Prod, partner, 1);
    checkAllValues<BFloat>(RedOp::Avg, partner, 3);
  }
}

}  // namespace
}  // namespace weft::reduce
