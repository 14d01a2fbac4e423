// SPDX-License-Identifier: Apache-2.0
// Inside lib/reduce: where each family of types resolves its kernels for the CPU at hand.
#pragma once

#include "reduce/reduce.h"

namespace weft {

FoldFn integerFold(DType type, RedOp op);
ScaleFn integerScale(DType type);

FoldFn floatFold(DType type, RedOp op);  // F32, F64
SpreadFn floatSpread(DType type);        // their sum
ScaleFn floatScale(DType type);

FoldFn halfFold(DType type, RedOp op);  // F16, BF16
SpreadFn halfSpread(DType type);        // their sum
ScaleFn halfScale(DType type);

}  // namespace weft
