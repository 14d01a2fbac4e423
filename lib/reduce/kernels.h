// SPDX-License-Identifier: Apache-2.0
// Inside lib/reduce: where each family of types resolves its kernels for the CPU at hand.
#pragma once

#include "reduce/reduce.h"

namespace weft::reduce {

struct Kernels {
  FoldFn fold;
  SpreadFn spread;  // null but for sums of floats
  ScaleFn scale;
};
Kernels integerKernels(DType type, RedOp op);
Kernels floatKernels(DType type, RedOp op);

}  // namespace weft::reduce
