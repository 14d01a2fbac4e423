// SPDX-License-Identifier: Apache-2.0
// The random bits of stochastic rounding.
//
// The seed, the step and the number of the grid block are hashed well, to 64 bits, once a block.
// From these and the number of a word in the block a hash of one multiplication makes 32 bits, 16
// for each of two elements that are 16 apart: no shuffles are needed, and any vector of up to 16
// lanes gives the same bits.
#if defined(WEFT_REDUCE_RANDOM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_REDUCE_RANDOM_INL_H
#undef WEFT_REDUCE_RANDOM_INL_H
#else
#define WEFT_REDUCE_RANDOM_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "reduce/floats-inl.h"
#include "reduce/rounding.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

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

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
