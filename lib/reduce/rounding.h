// SPDX-License-Identifier: Apache-2.0
// Between float and the 16-bit floats, rounded to nearest or at random.
//
// Stochastic rounding goes up with the probability that makes the expected value exact: it adds
// random bits below the last one that is kept, and truncates. The bits are a function of the seed,
// the step and the element's logical index alone, so replicas that hold an element round it alike
// whatever their rank, their shard's borders, and the instruction set.
//
// As in reduce.h, every NaN becomes the positive quiet NaN, denormals are kept, and no result
// depends on the split of an array over calls. Pointers need only the alignment of their elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reduce/reduce.h"

namespace weft::reduce {

enum class RoundingMode : uint8_t { Nearest, Stochastic };

struct Rounding {
  RoundingMode mode = RoundingMode::Nearest;
  uint64_t seed = 0;  // both unused for Nearest
  uint64_t step = 0;
};

// dst[i] = src[i] rounded to `to`, one of F32 (a copy), F16 and BF16. src[0] is logical element
// `first`. dst must not overlap src. What lies beyond the largest finite number goes to infinity:
// to nearest from half a step beyond, stochastically with the probability of any step up.
void castFloats(DType to, void* dst, const float* src, size_t n, const Rounding& rounding,
                uint64_t first);

// dst[i] = src[i], exactly but for NaNs; `from` is F32, F16 or BF16. dst must not overlap src.
void widen(DType from, float* dst, const void* src, size_t n);

}  // namespace weft::reduce
