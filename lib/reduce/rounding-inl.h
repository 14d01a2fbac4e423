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
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "reduce/floats-inl.h"
#include "reduce/rounding.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

// ---- the random bits of stochastic rounding
//
// The seed, the step and the number of the grid block are hashed well, to 64 bits, once a block.
// From these and the number of a word in the block a hash of one multiplication makes 32 bits, 16
// for each of two elements that are 16 apart: no shuffles are needed, and any vector of up to 16
// lanes gives the same bits.

using WordTag = hn::Rebind<uint32_t, FloatTag>;
using Words = hn::Vec<WordTag>;

// The finalizer of splitmix64 (Steele, Lea and Flood, 2014).
inline uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

inline uint64_t keyOf(const Rounding& rounding) {
  return mixed(mixed(rounding.seed + 0x9E3779B97F4A7C15) + rounding.step);
}

// The words of one grid block, in order.
class RandomWords {
 public:
  // `word`: the first one in the block.
  RandomWords(uint64_t key, uint64_t grid, size_t word) {
    const uint64_t bits = mixed(key + grid);
    const uint32_t start = static_cast<uint32_t>(bits) + static_cast<uint32_t>(word) * kStep;
    const Words lane = hn::Iota(WordTag(), 0u);
    counter_ = hn::Add(hn::Set(WordTag(), start), hn::Mul(lane, hn::Set(WordTag(), kStep)));
    key_ = hn::Set(WordTag(), static_cast<uint32_t>(bits >> 32));
  }

  HWY_INLINE Words next() {
    const Words c = counter_;
    counter_ = hn::Add(c, hn::Set(WordTag(), static_cast<uint32_t>(kFloats) * kStep));
    const Words h = hn::Mul(hn::Xor3(c, key_, hn::ShiftRight<15>(c)), hn::Set(WordTag(), kFactor));
    return hn::Xor(h, hn::ShiftRight<15>(h));
  }

 private:
  static constexpr uint32_t kStep = 0x9E3779B9;    // of a counter that visits all words, far apart
  static constexpr uint32_t kFactor = 0x2C1B3C6D;  // from the integer hashes of Wellons' prospector
  Words counter_, key_;
};

// ---- the rounding

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
