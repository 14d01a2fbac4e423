// SPDX-License-Identifier: Apache-2.0
// Inside lib/reduce: where each family of types resolves its kernels for the CPU at hand.
#pragma once

#include "reduce/reduce.h"

namespace weft {

FoldFn integerFold(DType type, RedOp op);
ScaleFn integerScale(DType type);

FoldFn floatFold(DType type, RedOp op);  // F32, F64
FoldFn floatFoldStream(DType type);      // the sum of F32
ScaleFn floatScale(DType type);

FoldFn halfFold(DType type, RedOp op);  // F16, BF16
FoldFn halfFoldStream(DType type);      // the sum of BF16
ScaleFn halfScale(DType type);

}  // namespace weft
