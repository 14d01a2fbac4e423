// SPDX-License-Identifier: Apache-2.0
// What the kernels must compute, written the slow and obvious way: no vectors, no bit tricks that
// the kernels share. Each element type is a class; its arithmetic is in Wide<T>.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "reduce/reduce.h"

namespace weft::reference {
using namespace reduce;

// A binary float format of 16 bits: kMantissa explicit bits, smallest normal 2^kMinExponent.
template <int kMantissa, int kMinExponent>
struct Small {
  static constexpr int kSpecial = (1 << (15 - kMantissa)) - 1;  // the exponent field of Inf and NaN
  static constexpr uint16_t kNaN = (kSpecial << kMantissa) | (1 << (kMantissa - 1));
  uint16_t bits;

  float widened() const {
    const int exponent = (bits >> kMantissa) & kSpecial;
    const int mantissa = bits & ((1 << kMantissa) - 1);
    const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
    if (exponent == kSpecial) {
      return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * HUGE_VALF;
    }
    const int full = exponent == 0 ? mantissa : mantissa + (1 << kMantissa);
    const int scale = (exponent == 0 ? 1 : exponent) - 1 + kMinExponent - kMantissa;
    return sign * static_cast<float>(std::ldexp(full, scale));
  }

  // To nearest even: nearbyint of the value in units of its last place.
  static Small rounded(float x) {
    if (std::isnan(x)) return {kNaN};
    const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
    const double magnitude = std::fabs(static_cast<double>(x));
    int exponent = magnitude == 0 ? kMinExponent : std::ilogb(magnitude);
    if (exponent < kMinExponent) exponent = kMinExponent;
    const int maxExponent = kMinExponent + kSpecial - 2;
    if (std::isinf(x) || exponent > maxExponent) return {infinity(sign)};
    const auto units =
        static_cast<int>(std::nearbyint(std::ldexp(magnitude, kMantissa - exponent)));
    // A carry into the next binade, and from denormal to normal, is the integer addition's.
    const int field = units + ((exponent - kMinExponent) << kMantissa);
    return {static_cast<uint16_t>(field | sign)};
  }

 private:
  static uint16_t infinity(uint16_t sign) {
    return static_cast<uint16_t>((kSpecial << kMantissa) | sign);
  }
};

using Half = Small<10, -14>;
using BFloat = Small<7, -126>;

template <class T>
constexpr bool isSmall = std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;

template <class T>
using Wide = std::conditional_t<isSmall<T>, float, T>;

template <class T>
constexpr DType dtypeOf() {
  if constexpr (std::is_same_v<T, int8_t>) return DType::I8;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::U8;
  if constexpr (std::is_same_v<T, int32_t>) return DType::I32;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::U32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::I64;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::U64;
  if constexpr (std::is_same_v<T, Half>) return DType::F16;
  if constexpr (std::is_same_v<T, BFloat>) return DType::BF16;
  if constexpr (std::is_same_v<T, float>) return DType::F32;
  if constexpr (std::is_same_v<T, double>) return DType::F64;
}

// Calls check.operator()<T>() for each element type.
template <class Check>
void forEachType(const Check& check) {
  check.template operator()<int8_t>();
  check.template operator()<uint8_t>();
  check.template operator()<int32_t>();
  check.template operator()<uint32_t>();
  check.template operator()<int64_t>();
  check.template operator()<uint64_t>();
  check.template operator()<Half>();
  check.template operator()<BFloat>();
  check.template operator()<float>();
  check.template operator()<double>();
}

template <class T>
Wide<T> widen(T x) {
  if constexpr (isSmall<T>) {
    return x.widened();
  } else {
    return x;
  }
}

template <class T>
T narrow(Wide<T> x) {
  if constexpr (isSmall<T>) {
    return T::rounded(x);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(x) ? std::numeric_limits<T>::quiet_NaN() : x;
  } else {
    return x;
  }
}

template <class W>
W larger(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<W>::quiet_NaN();
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a > b ? a : b;
}

template <class W>
W smaller(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<W>::quiet_NaN();
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}

template <class W>
W added(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) return a + b;
  return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <class W>
W multiplied(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) return a * b;
  return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <class W>
W bitwise(RedOp op, W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    const auto bits = [&](int i) {
      const bool x = a >> i & 1, y = b >> i & 1;
      return op == RedOp::Band ? x && y : op == RedOp::Bor ? x || y : x != y;
    };
    uint64_t result = 0;
    for (int i = 0; i < 8 * static_cast<int>(sizeof(W)); ++i) result |= uint64_t{bits(i)} << i;
    return static_cast<W>(result);
  } else {
    return std::numeric_limits<W>::quiet_NaN();
  }
}

template <class W>
W applied(RedOp op, W a, W b) {
  if (isBitwise(op)) return bitwise(op, a, b);
  switch (op) {
    case RedOp::Prod:
      return multiplied(a, b);
    case RedOp::Max:
      return larger(a, b);
    case RedOp::Min:
      return smaller(a, b);
    default:
      return added(a, b);
  }
}

template <class W>
W divided(W x, uint64_t divisor) {
  if constexpr (std::is_floating_point_v<W>) {
    return x / static_cast<W>(divisor);
  } else {
    return static_cast<W>(static_cast<__int128>(x) / static_cast<__int128>(divisor));
  }
}

template <class T>
std::vector<T> folded(RedOp op, const std::vector<std::vector<T>>& sources, uint64_t divisor) {
  std::vector<T> result(sources[0]);
  if (sources.size() == 1 && divisor == 1) return result;
  for (size_t i = 0; i < result.size(); ++i) {
    Wide<T> sum = widen(sources[0][i]);
    for (size_t s = 1; s < sources.size(); ++s) sum = applied(op, sum, widen(sources[s][i]));
    result[i] = narrow<T>(divided(sum, divisor));
  }
  return result;
}

template <class T>
std::vector<T> scaled(const std::vector<T>& source, T scalar) {
  std::vector<T> result;
  for (T x : source) result.push_back(narrow<T>(multiplied(widen(x), widen(scalar))));
  return result;
}

// Any bits at all: for floats infinities, NaNs with payloads, denormals and zeros come often.
template <class T>
T anyElement(std::mt19937_64& random) {
  uint64_t bits = random();
  const uint64_t kind = bits >> 60;
  bits = random();
  if (kind < 4) {
    bits = 0;  // special in the exponent: all ones or all zeros
    const uint64_t mantissa = kind % 2 == 0 ? 0 : random() & 0x3F;
    const int width = 8 * static_cast<int>(sizeof(T));
    const int mantissaBits = std::is_same_v<T, Half>     ? 10
                             : std::is_same_v<T, double> ? 52
                             : sizeof(T) == 4            ? 23
                                                         : 7;
    if (kind >= 2) bits = ~uint64_t{0} << mantissaBits;
    bits = (bits & ~(uint64_t{1} << (width - 1))) | mantissa | (random() & 1) << (width - 1);
  }
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Numbers whose sums and products stay finite, and round.
template <class T>
T mildElement(std::mt19937_64& random) {
  const double x = std::uniform_real_distribution<double>(-4, 4)(random);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else {
    return narrow<T>(static_cast<Wide<T>>(x));
  }
}

template <class T>
std::vector<T> randomElements(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> elements(count);
  for (T& x : elements) x = random() % 4 == 0 ? anyElement<T>(random) : mildElement<T>(random);
  return elements;
}

template <class T>
std::vector<std::vector<T>> randomSources(size_t n, size_t count) {
  std::vector<std::vector<T>> sources;
  for (size_t s = 0; s < n; ++s) sources.push_back(randomElements<T>(count, 100 * n + s));
  return sources;
}

}  // namespace weft::reference
