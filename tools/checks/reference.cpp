// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/reference.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

namespace weft::checks {
namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t randomAt(std::uint64_t seed, int rank, std::size_t element) {
  return mix(mix(seed) + mix(static_cast<std::uint64_t>(rank) << 32 | 1) + element * 0x9e3779b9u);
}

// Both for whole numbers of few enough bits.
std::uint16_t toHalf(float value) {
  if (value == 0) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
  return static_cast<std::uint16_t>(bits >> 16 & 0x8000) |
         static_cast<std::uint16_t>(exponent << 10 | (bits >> 13 & 0x3ff));
}
std::uint16_t toBfloat(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

// A type of weft's: what it is computed in, its digits, and how it is stored.
template <class T, int kDigits = std::numeric_limits<T>::digits>
struct Plain {
  using Compute = T;
  static constexpr int digits = kDigits;
  static T store(T value) { return value; }
};
struct Half : Plain<float, 11> {
  static std::uint16_t store(float value) { return toHalf(value); }
};
struct Bfloat : Plain<float, 8> {
  static std::uint16_t store(float value) { return toBfloat(value); }
};

template <class Do>
auto withType(weftDataType_t type, Do what) {
  switch (type) {
    case weftInt8:
      return what(Plain<std::int8_t>());
    case weftUint8:
      return what(Plain<std::uint8_t>());
    case weftInt32:
      return what(Plain<std::int32_t>());
    case weftUint32:
      return what(Plain<std::uint32_t>());
    case weftInt64:
      return what(Plain<std::int64_t>());
    case weftUint64:
      return what(Plain<std::uint64_t>());
    case weftFloat16:
      return what(Half());
    case weftFloat64:
      return what(Plain<double>());
    case weftBfloat16:
      return what(Bfloat());
    default:
      return what(Plain<float>());
  }
}

// Whole numbers, and not 0, which has a sign: of floats and averages so few bits that sums and
// products of four stay exact, else any.
template <class Type>
typename Type::Compute draw(weftRedOp_t op, std::uint64_t random) {
  using T = typename Type::Compute;
  constexpr bool kInteger = std::is_integral_v<T>;
  if (kInteger && op != weftAvg) return static_cast<T>(random);
  const int bits = std::min(62, op == weftProd ? Type::digits / 4 : Type::digits - 2);
  const auto magnitude = static_cast<T>((random >> 1 & ((std::uint64_t{1} << bits) - 1)) | 1);
  return std::is_signed_v<T> && (random & 1) ? static_cast<T>(-magnitude) : magnitude;
}

// Integers wrap around, so they are added and multiplied without a sign.
template <class T>
T fold(weftRedOp_t op, T a, T b) {
  if (op == weftMax) return std::max(a, b);
  if (op == weftMin) return std::min(a, b);
  if constexpr (std::is_integral_v<T>) {
    if (op == weftBand) return static_cast<T>(a & b);
    if (op == weftBor) return static_cast<T>(a | b);
    if (op == weftBxor) return static_cast<T>(a ^ b);
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<T>(op == weftProd ? x * y : x + y);
  } else {
    return op == weftProd ? a * b : a + b;
  }
}

template <class Value>
std::vector<std::byte> bytesOf(std::size_t count, Value valueAt) {
  using Stored = decltype(valueAt(std::size_t{0}));
  std::vector<std::byte> bytes(count * sizeof(Stored));
  for (std::size_t i = 0; i < count; ++i) {
    const Stored value = valueAt(i);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

}  // namespace

const char* nameOf(weftDataType_t type) {
  constexpr const char* kNames[weftNumTypes] = {"i8",  "u8",  "i32", "u32", "i64",
                                                "u64", "f16", "f32", "f64", "bf16"};
  return kNames[type];
}

const char* nameOf(weftRedOp_t op) {
  constexpr const char* kNames[weftNumOps] = {"sum", "prod", "max", "min",
                                              "avg", "band", "bor", "bxor"};
  return kNames[op];
}

std::vector<std::byte> inputOf(weftDataType_t type, weftRedOp_t op, std::size_t count,
                               std::uint64_t seed, int rank) {
  return withType(type, [&](auto t) {
    using Type = decltype(t);
    return bytesOf(
        count, [&](std::size_t i) { return Type::store(draw<Type>(op, randomAt(seed, rank, i))); });
  });
}

std::vector<std::byte> resultOf(weftDataType_t type, weftRedOp_t op, std::size_t count,
                                std::uint64_t seed, int ranks) {
  return withType(type, [&](auto t) {
    using Type = decltype(t);
    return bytesOf(count, [&](std::size_t i) {
      auto value = draw<Type>(op, randomAt(seed, 0, i));
      for (int rank = 1; rank < ranks; ++rank)
        value = fold(op, value, draw<Type>(op, randomAt(seed, rank, i)));
      if (op == weftAvg)
        value = static_cast<decltype(value)>(value / static_cast<decltype(value)>(ranks));
      return Type::store(value);
    });
  });
}

}  // namespace weft::checks
