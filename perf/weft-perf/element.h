// SPDX-License-Identifier: Apache-2.0
// One element of each type: its bits, and the wider type that its reference result is computed in.
#pragma once

#include <weft/weft.hpp>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace weft::perf {

template <class T>
inline constexpr bool kIsInteger = std::is_integral_v<T>;

// Layout of a floating-point type: an unsigned type of the same size, explicit mantissa bits, and
// the exponent bias (IEEE 754 binary16, binary32, binary64; bfloat16 is the top half of binary32).
template <class T>
struct Format;
template <>
struct Format<Float16> {
  using Bits = std::uint16_t;
  static constexpr int kMantissa = 10, kBias = 15;
};
template <>
struct Format<Bfloat16> {
  using Bits = std::uint16_t;
  static constexpr int kMantissa = 7, kBias = 127;
};
template <>
struct Format<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissa = 23, kBias = 127;
};
template <>
struct Format<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
};

template <class T>
constexpr T fromBits(std::uint64_t bits) {
  if constexpr (kIsInteger<T>) {
    return static_cast<T>(bits);
  } else {
    return std::bit_cast<T>(static_cast<typename Format<T>::Bits>(bits));
  }
}

// Where reference results live: integers wrap in 64 bits, floats are computed in fp64, and fp64
// itself in whatever the machine has beyond it.
template <class T>
struct WideOf {
  using type = double;
};
template <>
struct WideOf<double> {
  using type = long double;
};
template <class T>
requires kIsInteger<T>
struct WideOf<T> {
  using type = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
};
template <class T>
using Wide = typename WideOf<T>::type;

// Half to float without branches on the exponent: its fields, moved to float's, are 2^-112 too
// small.
inline float halfToFloat(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7fffu;
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(scaled);
  const bool special = magnitude >= 0x7c00u;  // infinity or NaN
  return std::bit_cast<float>(sign | (special ? bits | 0x7f800000u : bits));
}

template <class T>
Wide<T> widen(T value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return halfToFloat(value.bits);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
  } else {
    return static_cast<Wide<T>>(value);
  }
}

// The element of that value, which must be one: nothing is rounded. Integers are taken modulo
// 2^bits.
template <class T>
T narrow(Wide<T> value) {
  if constexpr (std::is_same_v<T, Float16>) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(value) * 0x1p-112f);
    return {static_cast<std::uint16_t>((bits & 0x7fffffffu) >> 13 | (bits >> 16 & 0x8000u))};
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return {static_cast<std::uint16_t>(bits >> 16)};
  } else {
    return static_cast<T>(value);
  }
}

// Calls function(T{}) with the C++ type of `type`.
template <class Function>
decltype(auto) withType(weftDataType_t type, Function function) {
  switch (type) {
    case weftInt8:
      return function(std::int8_t{});
    case weftUint8:
      return function(std::uint8_t{});
    case weftInt32:
      return function(std::int32_t{});
    case weftUint32:
      return function(std::uint32_t{});
    case weftInt64:
      return function(std::int64_t{});
    case weftUint64:
      return function(std::uint64_t{});
    case weftFloat16:
      return function(Float16{});
    case weftBfloat16:
      return function(Bfloat16{});
    case weftFloat64:
      return function(double{});
    default:
      return function(float{});
  }
}

}  // namespace weft::perf
