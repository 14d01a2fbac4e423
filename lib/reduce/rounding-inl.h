// SPDX-License-Identifier: Apache-2.0
// Blocks of floats to 16-bit floats, to nearest or at random.
#if defined(WEFT_REDUCE_ROUNDING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_REDUCE_ROUNDING_INL_H
#undef WEFT_REDUCE_ROUNDING_INL_H
#else
#define WEFT_REDUCE_ROUNDING_INL_H
#endif

#include <hwy/highway.h>

#include <array>
#include <cstring>

#include "reduce/floats-inl.h"
#include "reduce/random-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

// What is rounded at once: the elements that 16 random words serve.
constexpr size_t kBlock = 32;
constexpr size_t kVectors = kBlock / kFloats;

using Floats = hn::Vec<FloatTag>;
template <class To>
using Block = std::array<typename To::Value, kVectors>;

HWY_INLINE Words word(uint32_t x) { return hn::Set(WordTag(), x); }
HWY_INLINE Words bitsOf(Floats v) { return hn::BitCast(WordTag(), v); }
HWY_INLINE Floats floatsOf(Words bits) { return hn::BitCast(FloatTag(), bits); }

// The types that are rounded to: how a float is rounded, to nearest or by the random bits in the
// lower half of `random`, and how a block of the results is stored.
struct ToBF16 {
  using Value = Words;  // the element is the upper half

  static HWY_INLINE Words nearest(Floats v) {
    const Words bits = bitsOf(oneNaN(v));
    const Words isOdd = hn::And(hn::ShiftRight<16>(bits), word(1));
    return hn::Add(hn::Add(bits, word(0x7FFF)), isOdd);
  }

  static HWY_INLINE Words stochastic(Floats v, Words random) {
    return hn::Add(bitsOf(oneNaN(v)), random);
  }

  static HWY_INLINE void store(const Block<ToBF16>& block, uint16_t* dst) {
#if HWY_TARGET == HWY_SCALAR
    for (size_t i = 0; i < kBlock; ++i) {
      const auto x = static_cast<uint16_t>(hn::GetLane(block[i]) >> 16);
      std::memcpy(dst + i, &x, sizeof x);
    }
#else
    const hn::Repartition<uint16_t, WordTag> narrow;
    for (size_t i = 0; i < kVectors; i += 2) {
      const auto low = hn::BitCast(narrow, block[i]), high = hn::BitCast(narrow, block[i + 1]);
      hn::StoreU(hn::ConcatOdd(narrow, high, low), narrow, dst + i * kFloats);
    }
#endif
  }
};

struct ToF16 {
  using Value = Floats;  // the store rounds to nearest

  static HWY_INLINE Floats nearest(Floats v) { return oneNaN(v); }

  // Normal numbers lose 13 bits. Below 2^-14 the elements are multiples of 2^-24, as they are in
  // the binade above, where an addition takes them and a subtraction brings them back.
  static HWY_INLINE Floats stochastic(Floats v, Words random) {
    const Floats number = oneNaN(v), magnitude = hn::Abs(number);
    const Floats border = hn::Set(FloatTag(), 0x1p-14f);
    const auto isSmall = hn::Lt(magnitude, border);
    if (HWY_LIKELY(hn::AllFalse(FloatTag(), isSmall))) return truncated(number, random);
    const Floats shift = hn::IfThenElseZero(isSmall, border);
    const Floats rounded = hn::Sub(truncated(hn::Add(magnitude, shift), random), shift);
    return hn::CopySignToAbs(rounded, number);
  }

  // To a multiple of the 13th bit, after an addition below it.
  static HWY_INLINE Floats truncated(Floats v, Words random) {
    const Words sum = hn::Add(bitsOf(v), hn::And(random, word(0x1FFF)));
    return floatsOf(hn::And(sum, word(~0x1FFFu)));
  }

  static HWY_INLINE void store(const Block<ToF16>& block, uint16_t* dst) {
    auto* to = reinterpret_cast<std::byte*>(dst);
    for (size_t i = 0; i < kVectors; ++i)
      Float16<FloatTag>::store(block[i], to + i * kFloats * sizeof(uint16_t));
  }
};

struct Nearest {
  template <class To>
  HWY_INLINE Block<To> rounded(const float* src) {
    Block<To> block;
    for (size_t i = 0; i < kVectors; ++i)
      block[i] = To::nearest(loadFloats(FloatTag(), src + i * kFloats));
    return block;
  }
};

struct Stochastic {
  RandomWords words;

  template <class To>
  HWY_INLINE Block<To> rounded(const float* src) {
    Block<To> block;
    for (size_t i = 0; i < kVectors / 2; ++i) {
      const float* low = src + i * kFloats;
      const Words random = words.next();
      block[i] = To::stochastic(loadFloats(FloatTag(), low), hn::And(random, word(0xFFFF)));
      block[i + kVectors / 2] =
          To::stochastic(loadFloats(FloatTag(), low + kBlock / 2), hn::ShiftRight<16>(random));
    }
    return block;
  }
};

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
