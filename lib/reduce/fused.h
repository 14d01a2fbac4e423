// SPDX-License-Identifier: Apache-2.0
// Inside lib/reduce: what is done with one grid block in one pass. Both return the sum of squares
// of the gradients, and need a fence before anybody is told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reduce/optimizer.h"
#include "reduce/steps.h"

namespace weft::reduce {

struct FusedBlock {
  const AdamFactors& factors;
  float keep;
  uint64_t first;  // logical index, at the beginning of a grid block
  size_t at;       // of the block in addends and out
  float *w, *m, *v;
  std::span<const Addend> addends;
  std::span<void* const> out;  // each at a multiple of 64 bytes
  DType outType;               // F16 or BF16
  const Rounding& rounding;
};
double stepFusedBlock(const FusedBlock& block);

// The sums of elements from `at` on, to a multiple of 64 bytes.
double foldFusedBlock(std::span<const Addend> addends, size_t at, float* sums);

}  // namespace weft::reduce
