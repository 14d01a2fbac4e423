// SPDX-License-Identifier: Apache-2.0
#include "reduce/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

namespace weft::reduce {
namespace {

constexpr size_t kSums = ExactSum::kWords - 1;  // words of the sum itself
constexpr size_t kBad = kSums;                  // the word that counts what is not finite
constexpr int kLowest = -320;                   // the exponent of the lowest bit
constexpr uint64_t kWordMask = 0xFFFFFFFF;

// x = mantissa * 2^exponent, for a finite x that is not negative.
struct Parts {
  uint64_t mantissa;
  int exponent;

  explicit Parts(double x) {
    const auto bits = std::bit_cast<uint64_t>(x);
    const int field = static_cast<int>(bits >> 52) & 0x7FF;
    mantissa = (bits & ((uint64_t{1} << 52) - 1)) | (field == 0 ? 0 : uint64_t{1} << 52);
    exponent = (field == 0 ? 1 : field) - 1075;
  }
};

// The bits from the highest one of the sum on, 64 of them, and whether any are set below.
uint64_t leadingBits(const ExactSum::Words& words, size_t top) {
  const auto word = [&](size_t back) {
    return back > top ? 0 : static_cast<uint64_t>(words[top - back]);
  };
  const int shift = std::countl_zero(static_cast<uint32_t>(words[top]));
  const uint64_t high = word(0) << 32 | word(1);
  const uint64_t leading = shift == 0 ? high : high << shift | word(2) >> (32 - shift);
  uint64_t below = (word(2) << shift) & kWordMask;
  for (size_t back = 3; back <= top; ++back) below |= word(back);
  return below != 0 ? leading | 1 : leading;
}

}  // namespace

void ExactSum::add(double x) {
  if (x == 0) return;
  Parts parts(x);
  int place = parts.exponent - kLowest;
  if (place < 0) {
    parts.mantissa = place > -64 ? parts.mantissa >> -place : 0;  // zeros, for the addends we take
    place = 0;
  }
  const auto word = static_cast<size_t>(place / 32);
  if (!std::isfinite(x) || word + 2 >= kSums) {
    ++words_[kBad];
    return;
  }
  const int shift = place % 32;
  const uint64_t low = (parts.mantissa & kWordMask) << shift;
  const uint64_t high = ((parts.mantissa >> 32) << shift) + (low >> 32);
  words_[word] += static_cast<int64_t>(low & kWordMask);
  words_[word + 1] += static_cast<int64_t>(high & kWordMask);
  words_[word + 2] += static_cast<int64_t>(high >> 32);
}

void ExactSum::add(const ExactSum& other) {
  for (size_t i = 0; i < kWords; ++i) words_[i] += other.words_[i];
}

double ExactSum::value() const {
  if (words_[kBad] != 0) return std::numeric_limits<double>::quiet_NaN();
  Words words = words_;
  for (size_t i = 0; i + 1 < kSums; ++i) {  // carry, so that all but the top are within 32 bits
    words[i + 1] += words[i] >> 32;
    words[i] &= static_cast<int64_t>(kWordMask);
  }
  size_t top = kSums - 1;
  while (top > 0 && words[top] == 0) --top;
  if (words[top] == 0) return 0;
  const auto leading = static_cast<double>(leadingBits(words, top));
  const int shift = std::countl_zero(static_cast<uint32_t>(words[top]));
  return std::ldexp(leading, kLowest + 32 * (static_cast<int>(top) - 1) - shift);
}

}  // namespace weft::reduce
