// SPDX-License-Identifier: Apache-2.0
#include "reduce/reduce.h"

#include <array>

#include "reduce/kernels.h"

namespace weft::reduce {
namespace {

struct Traits {
  const char* name;
  Kernels (*kernels)(DType type, RedOp op);
};

constexpr std::array<Traits, 10> kTypes{{{"int8", integerKernels},
                                         {"uint8", integerKernels},
                                         {"int32", integerKernels},
                                         {"uint32", integerKernels},
                                         {"int64", integerKernels},
                                         {"uint64", integerKernels},
                                         {"half", floatKernels},
                                         {"float", floatKernels},
                                         {"double", floatKernels},
                                         {"bfloat16", floatKernels}}};

constexpr std::array<const char*, 10> kOps{"sum",  "prod", "max",  "min",    "avg",
                                           "band", "bor",  "bxor", "mulsum", "kernel"};

const Traits& traits(DType type) { return kTypes[static_cast<size_t>(type)]; }

Kernels kernels(DType type, RedOp op) { return traits(type).kernels(type, op); }

}  // namespace

const char* name(DType type) { return traits(type).name; }
const char* name(RedOp op) { return kOps[static_cast<size_t>(op)]; }

FoldFn foldKernel(DType type, RedOp op) { return kernels(type, op).fold; }
SpreadFn spreadKernel(DType type, RedOp op) { return kernels(type, op).spread; }
ScaleFn scaleKernel(DType type) { return kernels(type, RedOp::PreMulSum).scale; }

void finish(DType type, void* data, size_t count, uint64_t divisor) {
  if (divisor == 1) return;
  const void* source = data;
  foldKernel(type, RedOp::Avg)(data, &source, 1, count, divisor);
}

}  // namespace weft::reduce
