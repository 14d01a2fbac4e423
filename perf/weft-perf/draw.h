// SPDX-License-Identifier: Apache-2.0
// The generator behind recipe.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "perf/weft-perf/element.h"
#include "perf/weft-perf/recipe.h"

namespace weft::perf {

// "lowbias32", a bijective 32-bit mixer found by exhaustive search (Wellons, Prospecting for Hash
// Functions, 2018). 32 bits, because SIMD units multiply those.
constexpr std::uint32_t hash32(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

constexpr std::uint64_t spread64(std::uint32_t x) { return x * 0x9e3779b97f4a7c15ull; }

// The weight of a rank under Op::MulSum: 1, 2 or 3.
constexpr int weightOf(int rank) { return 1 + rank % 3; }
constexpr int kLargestWeight = 3;

// Beyond this many ranks the factors of a product are 1 or -1, so that it stays in half's range.
constexpr int kFactors = 8;

// Generates the input elements of one rank.
template <class T>
class Draw {
 public:
  Draw(const Recipe& recipe, int rank)
      : key_(hash32(hash32(recipe.seed) + static_cast<std::uint32_t>(rank) * 0x632be5abu)),
        kind_(kindOf(recipe)),
        flat_(recipe.op == Op::Prod && rank >= kFactors) {
    if (kind_ == Kind::Integers) setRange(recipe, rank);
  }

  void fill(std::size_t begin, std::size_t count, T* out) const {
    switch (kind_) {
      case Kind::Bits:
        return fillWith(begin, count, out, [](std::uint32_t h) { return bits(h); });
      case Kind::OddBits:
        return fillWith(begin, count, out, [](std::uint32_t h) { return oddBits(h); });
      case Kind::Integers:
        return fillWith(begin, count, out, [this](std::uint32_t h) { return integer(h); });
      case Kind::Powers:
        return fillWith(begin, count, out, [this](std::uint32_t h) { return power(h); });
      case Kind::Ones:
        return fillWith(begin, count, out, [](std::uint32_t) { return narrow<T>(1); });
      case Kind::Reals:
        return fillWith(begin, count, out, [this](std::uint32_t h) { return real(h); });
    }
  }

 private:
  enum class Kind {
    Bits,      // any bit pattern
    OddBits,   // of an integer product: even factors would soon make it 0
    Integers,  // small enough that all partial sums are exact
    Powers,    // 1/2, 1 or 2, with a sign: products are exact
    Ones,
    Reals,  // in +-[1/2, 2), all mantissa bits random
  };

  static Kind kindOf(const Recipe& recipe) {
    if (recipe.fill == Fill::Ones) return Kind::Ones;
    if (recipe.op == Op::None) return Kind::Bits;
    if constexpr (kIsInteger<T>) {
      if (recipe.op == Op::Avg) return Kind::Integers;
      return recipe.op == Op::Prod ? Kind::OddBits : Kind::Bits;
    } else {
      if (recipe.fill == Fill::Random) return Kind::Reals;
      return recipe.op == Op::Prod ? Kind::Powers : Kind::Integers;
    }
  }

  // Largest integer up to which all are representable, within the 31 bits that a hash can fill.
  static constexpr std::int64_t exactLimit() {
    constexpr std::int64_t kHashLimit = 0x7fffffff;
    if constexpr (kIsInteger<T>) {
      constexpr std::uint64_t kMax = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
      return kMax < kHashLimit ? static_cast<std::int64_t>(kMax) : kHashLimit;
    } else {
      return std::min(std::int64_t{1} << (Format<T>::kMantissa + 1), kHashLimit);
    }
  }

  // Values are multiples of unit_ up to limit units, so that the sum over all ranks is exact, and
  // its average too. With more ranks than that leaves room for, the last ones are 0.
  void setRange(const Recipe& recipe, int rank) {
    const bool divides = recipe.op == Op::Avg && !kIsInteger<T>;
    unit_ = divides ? recipe.ranks : 1;
    const std::int64_t weight = recipe.op == Op::MulSum ? kLargestWeight : 1;
    const std::int64_t budget = exactLimit() / unit_ / weight;
    std::int64_t limit = std::max<std::int64_t>(budget / recipe.ranks, 1);
    if (rank >= budget / limit) limit = 0;
    constexpr bool kSigned = !kIsInteger<T> || std::is_signed_v<T>;
    lowest_ = kSigned ? -limit : 0;
    choices_ = static_cast<std::uint64_t>(limit - lowest_) + 1;
  }

  static T bits(std::uint32_t h) { return fromBits<T>(spread64(h)); }
  static T oddBits(std::uint32_t h) { return fromBits<T>(spread64(h) | 1); }

  T integer(std::uint32_t h) const {
    const std::int64_t value = static_cast<std::int64_t>(h * choices_ >> 32) + lowest_;
    return narrow<T>(static_cast<Wide<T>>(value * unit_));
  }

  T power(std::uint32_t h) const {
    if constexpr (kIsInteger<T>) {
      return T{1};
    } else {
      const std::uint64_t exponent = flat_ ? 1 : (h & 0xffffu) * 3u >> 16;  // 0, 1 or 2
      return assemble(h >> 31, exponent + Format<T>::kBias - 1, 0);
    }
  }

  T real(std::uint32_t h) const {
    if constexpr (kIsInteger<T>) {
      return T{1};
    } else {
      const std::uint64_t random = spread64(h);
      if (flat_) return assemble(random >> 63, Format<T>::kBias, 0);
      const std::uint64_t exponent = (random >> Format<T>::kMantissa & 1) + Format<T>::kBias - 1;
      return assemble(random >> 63, exponent, random);
    }
  }

  static T assemble(std::uint64_t sign, std::uint64_t exponent, std::uint64_t mantissa) {
    constexpr int kMantissa = Format<T>::kMantissa;
    constexpr int kSignBit = static_cast<int>(sizeof(T)) * 8 - 1;
    constexpr std::uint64_t kMask = (std::uint64_t{1} << kMantissa) - 1;
    return fromBits<T>(sign << kSignBit | exponent << kMantissa | (mantissa & kMask));
  }

  template <class Element>
  void fillWith(std::size_t begin, std::size_t count, T* out, Element element) const {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t index = begin + i;
      const std::uint32_t high = static_cast<std::uint32_t>(index >> 32) * 0x85ebca6bu;
      out[i] = element(hash32((static_cast<std::uint32_t>(index) ^ high) + key_));
    }
  }

  std::uint32_t key_;
  Kind kind_;
  bool flat_;
  std::int64_t unit_ = 1;
  std::int64_t lowest_ = 0;
  std::uint64_t choices_ = 1;
};

}  // namespace weft::perf
