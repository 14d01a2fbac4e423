// SPDX-License-Identifier: Apache-2.0
// Conversions between float and the 16-bit floats against the reference, bit for bit, and what
// stochastic rounding is for: no bias, and nothing lost on average.
#include "reduce/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "arena.h"
#include "reference.h"
#include "target_test.h"

namespace weft::reduce {
namespace {

using reference::BFloat;
using reference::Half;
using Bits = std::vector<uint16_t>;

constexpr Rounding kNearest{};
constexpr DType kHalves[] = {DType::BF16, DType::F16};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kDraws = 4'000'000;
#else
constexpr size_t kDraws = 100'000'000;
#endif

Rounding stochastic(uint64_t seed, uint64_t step) { return {RoundingMode::Stochastic, seed, step}; }

Bits cast(DType to, const std::vector<float>& src, const Rounding& rounding, uint64_t first = 0) {
  Bits dst(src.size());
  castFloats(to, dst.data(), src.data(), src.size(), rounding, first);
  return dst;
}

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// The random bits of one element. They are part of what a checkpoint relies on.
uint32_t randomBits(const Rounding& rounding, uint64_t element) {
  const uint64_t key =
      mixed(mixed(mixed(rounding.seed + 0x9E3779B97F4A7C15) + rounding.step) + element / 1024);
  const auto place = static_cast<uint32_t>(element % 1024);
  const uint32_t word = place / 32 * 16 + place % 16;
  const uint32_t counter = static_cast<uint32_t>(key) + word * 0x9E3779B9;
  const uint32_t hash = (counter ^ (counter >> 15) ^ static_cast<uint32_t>(key >> 32)) * 0x2C1B3C6D;
  const uint32_t bits = hash ^ (hash >> 15);
  return place % 32 < 16 ? bits & 0xFFFF : bits >> 16;
}

uint16_t stochasticBF16(float x, uint32_t random) {
  if (std::isnan(x)) return BFloat::kNaN;
  return static_cast<uint16_t>((std::bit_cast<uint32_t>(x) + random) >> 16);
}

// 13 of the bits; below 2^-14 after rounding to multiples of 2^-37.
uint16_t stochasticF16(float x, uint32_t random) {
  if (std::isnan(x)) return Half::kNaN;
  const float magnitude = std::fabs(x);
  if (std::isinf(x)) return Half::rounded(x).bits;
  const float shift = magnitude < 0x1p-14f ? 0x1p-14f : 0.0f;
  const float shifted = magnitude + shift;
  const int last = std::ilogb(shifted) - 10;  // the exponent of the last bit that is kept
  const double units = std::ldexp(static_cast<double>(shifted), -last) + random % 8192 * 0x1p-13;
  const auto result = static_cast<float>(std::ldexp(std::floor(units), last)) - shift;
  return Half::rounded(std::copysign(result, x)).bits;
}

// Bit patterns of all kinds, half of them of sizes that fp16 has.
std::vector<float> anyFloats(size_t n) {
  std::mt19937 random(3);
  std::uniform_int_distribution<int> exponent(-30, 17);
  std::vector<float> all(n);
  for (size_t i = 0; i < n; ++i) {
    const auto pattern = static_cast<uint32_t>(random());
    const float small =
        std::ldexp(static_cast<float>(static_cast<int32_t>(pattern)) * 0x1p-31f, exponent(random));
    all[i] = i % 2 == 0 ? std::bit_cast<float>(pattern) : small;
  }
  const uint32_t kSpecial[] = {0,          0x80000000, 1,          0x80000001, 0x7F800000,
                               0xFF800000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x00800000,
                               0x007FFFFF, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x38800000,
                               0x387FFFFF, 0x33000000, 0x33000001, 0x3F808000, 0x3F818000};
  for (size_t i = 0; i < std::size(kSpecial) && i < n; ++i) {
    all[i * 7 % n] = std::bit_cast<float>(kSpecial[i]);
  }
  return all;
}

class RoundingTest : public TargetTest {};
WEFT_FOR_EACH_TARGET(RoundingTest);

TEST_P(RoundingTest, NearestIsThatOfTheReference) {
  const std::vector<float> src = anyFloats(100'003);
  const Bits bfloats = cast(DType::BF16, src, kNearest), halves = cast(DType::F16, src, kNearest);
  for (size_t i = 0; i < src.size(); ++i) {
    ASSERT_EQ(BFloat::rounded(src[i]).bits, bfloats[i]) << src[i];
    ASSERT_EQ(Half::rounded(src[i]).bits, halves[i]) << src[i];
  }
}

TEST_P(RoundingTest, StochasticIsThatOfTheReference) {
  const std::vector<float> src = anyFloats(100'003);
  const Rounding rounding = stochastic(17, 5);
  const uint64_t first = (uint64_t{1} << 40) + 77;
  const Bits bfloats = cast(DType::BF16, src, rounding, first);
  const Bits halves = cast(DType::F16, src, rounding, first);
  for (size_t i = 0; i < src.size(); ++i) {
    const uint32_t random = randomBits(rounding, first + i);
    ASSERT_EQ(stochasticBF16(src[i], random), bfloats[i]) << src[i];
    ASSERT_EQ(stochasticF16(src[i], random), halves[i]) << src[i] << ' ' << random;
  }
}

TEST_P(RoundingTest, WideningIsExact) {
  Bits all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> bfloats(all.size()), halves(all.size());
  widen(DType::BF16, bfloats.data(), all.data(), all.size());
  widen(DType::F16, halves.data(), all.data(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(BFloat{all[i]}.widened()),
              std::bit_cast<uint32_t>(bfloats[i]));
    ASSERT_EQ(std::bit_cast<uint32_t>(Half{all[i]}.widened()), std::bit_cast<uint32_t>(halves[i]));
  }
}

// Elements of a bigger array, cast alone, at any place and misalignment.
TEST_P(RoundingTest, AnySplitGivesTheSameBits) {
  const std::vector<float> src = anyFloats(3000);
  std::mt19937 random(4);
  for (DType to : kHalves) {
    for (const Rounding& rounding : {kNearest, stochastic(1, 2)}) {
      const Bits whole = cast(to, src, rounding, 900);
      for (int round = 0; round < 300; ++round) {
        const size_t from = random() % src.size();
        const size_t n = random() % std::min<size_t>(src.size() - from, round < 150 ? 70 : 3000);
        const std::vector<float> slice(&src[from], &src[from] + n);
        const Misaligned part(slice, 4 * (random() % 16));
        Misaligned dst(n * 2, 2 * (random() % 32));
        castFloats(to, dst.data(), static_cast<const float*>(part.data()), n, rounding, 900 + from);
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(whole[from + i], dst.at<uint16_t>(i));
        ASSERT_TRUE(dst.guardsIntact(n * 2));
      }
    }
  }
}

TEST_P(RoundingTest, NaNIsQuietAndInfinityStays) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::bit_cast<float>(0xFF800001);
  const std::vector<float> src = {inf, -inf, nan, -nan, 0.0f, -0.0f};
  for (uint64_t step = 0; step < 1000; ++step) {
    ASSERT_EQ((Bits{0x7F80, 0xFF80, 0x7FC0, 0x7FC0, 0, 0x8000}),
              cast(DType::BF16, src, stochastic(1, step)));
    ASSERT_EQ((Bits{0x7C00, 0xFC00, 0x7E00, 0x7E00, 0, 0x8000}),
              cast(DType::F16, src, stochastic(1, step)));
  }
}

// Of many draws of one value, how many went up, in standard deviations from what is right.
double deviation(DType to, float value, double probability, size_t draws, uint64_t seed) {
  constexpr size_t kChunk = 1 << 16;
  const std::vector<float> src(kChunk, value);
  Bits dst(kChunk);
  size_t done = 0, up = 0;
  const uint16_t below = cast(to, {value * (1 - 0x1p-7f)}, kNearest)[0];
  for (; done < draws; done += kChunk) {
    castFloats(to, dst.data(), src.data(), kChunk, stochastic(seed, 1), done);
    const uint16_t lowest = *std::min_element(dst.begin(), dst.end());
    EXPECT_LE(below, lowest);
    size_t ups = 0;
    for (uint16_t x : dst) ups += x != lowest ? 1 : 0;
    up += ups;
  }
  const auto n = static_cast<double>(done);
  return (static_cast<double>(up) - n * probability) /
         std::sqrt(n * probability * (1 - probability));
}

TEST(StochasticRounding, IsUnbiased) {
  for (double p : {0.5, 0.25, 1 / 3.0, 0.9}) {
    const auto bfloat = static_cast<float>(1 + p * 0x1p-7);
    const double exact = (static_cast<double>(bfloat) - 1) * 0x1p7;
    EXPECT_LT(std::fabs(deviation(DType::BF16, bfloat, exact, kDraws / 4, 11)), 4) << p;
  }
  const float half = 1 + 0.3f * 0x1p-10f, tiny = 5.3f * 0x1p-24f;
  const double exact = (static_cast<double>(half) - 1) * 0x1p10;
  EXPECT_LT(
      std::fabs(deviation(DType::F16, half, std::round(exact * 0x1p13) * 0x1p-13, kDraws / 20, 12)),
      4);
  const double fraction =
      std::nearbyint((static_cast<double>(tiny) * 0x1p24 - 5) * 0x1p13) * 0x1p-13;
  EXPECT_LT(std::fabs(deviation(DType::F16, tiny, fraction, kDraws / 20, 13)), 4);
}

// The signs of the errors of elements halfway between two bfloat16.
std::vector<double> errors(const Rounding& rounding, uint64_t first, size_t n) {
  const std::vector<float> src(n, 1 + 0x1p-8f);
  const Bits rounded = cast(DType::BF16, src, rounding, first);
  std::vector<double> all(n);
  for (size_t i = 0; i < n; ++i) all[i] = rounded[i] == 0x3F80 ? -1 : 1;
  return all;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b, size_t lag) {
  double sum = 0;
  for (size_t i = 0; i + lag < a.size(); ++i) sum += a[i] * b[i + lag];
  return sum / std::sqrt(static_cast<double>(a.size() - lag));
}

constexpr size_t kLags[] = {1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 33, 64, 512, 1023, 1024, 1025, 4096};

TEST(StochasticRounding, ErrorsAreNotCorrelated) {
  const size_t n = kDraws / 100;
  const std::vector<double> base = errors(stochastic(1, 1), 0, n);
  for (size_t lag : kLags) {
    EXPECT_LT(std::fabs(correlation(base, base, lag)), 4.5) << "elements apart: " << lag;
  }
  for (uint64_t next = 2; next < 12; ++next) {
    EXPECT_LT(std::fabs(correlation(base, errors(stochastic(1, next), 0, n), 0)), 4.5) << next;
    EXPECT_LT(std::fabs(correlation(base, errors(stochastic(next, 1), 0, n), 0)), 4.5) << next;
  }
}

// The mean of elements that start at 1 and to which 1e-4 is added 10,000 times.
double meanAfterAdditions(RoundingMode mode, size_t elements) {
  Bits weights(elements, 0x3F80);
  std::vector<float> sums(elements);
  for (uint64_t step = 0; step < 10000; ++step) {
    widen(DType::BF16, sums.data(), weights.data(), elements);
    for (float& x : sums) x += 1e-4f;
    castFloats(DType::BF16, weights.data(), sums.data(), elements, {mode, 1, step}, 0);
  }
  widen(DType::BF16, sums.data(), weights.data(), elements);
  double sum = 0;
  for (float x : sums) sum += static_cast<double>(x);
  return sum / static_cast<double>(elements);
}

TEST(StochasticRounding, SmallIncrementsAreNotLost) {
  EXPECT_EQ(1, meanAfterAdditions(RoundingMode::Nearest, 32));
  // The deviation of an element is 0.09, as measured over 1000 of them.
  EXPECT_NEAR(2.0002, meanAfterAdditions(RoundingMode::Stochastic, 1024), 4 * 0.09 / 32);
}

}  // namespace
}  // namespace weft::reduce
