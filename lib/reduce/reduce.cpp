// SPDX-License-Identifier: Apache-2.0
#include "reduce/reduce.h"

#include <array>

#include "reduce/kernels.h"

namespace weft {
namespace {

enum class Family : uint8_t { Integer, Float, Half };

struct Traits {
  const char* name;
  size_t size;
  Family family;
};

constexpr std::array<Traits, 10> kTypes{{{"int8", 1, Family::Integer},
                                         {"uint8", 1, Family::Integer},
                                         {"int32", 4, Family::Integer},
                                         {"uint32", 4, Family::Integer},
                                         {"int64", 8, Family::Integer},
                                         {"uint64", 8, Family::Integer},
                                         {"half", 2, Family::Half},
                                         {"float", 4, Family::Float},
                                         {"double", 8, Family::Float},
                                         {"bfloat16", 2, Family::Half}}};

constexpr std::array<const char*, 7> kOps{"sum", "prod", "max", "min", "avg", "mulsum", "kernel"};

const Traits& traits(DType type) { return kTypes[static_cast<size_t>(type)]; }

bool isSum(RedOp op) {
  return op == RedOp::Sum || op == RedOp::Avg || op == RedOp::PreMulSum || op == RedOp::Kernel;
}

}  // namespace

size_t sizeOf(DType type) { return traits(type).size; }
const char* name(DType type) { return traits(type).name; }
const char* name(RedOp op) { return kOps[static_cast<size_t>(op)]; }

FoldFn foldKernel(DType type, RedOp op) {
  switch (traits(type).family) {
    case Family::Integer:
      return integerFold(type, op);
    case Family::Float:
      return floatFold(type, op);
    case Family::Half:
      return halfFold(type, op);
  }
  return nullptr;
}

SpreadFn spreadKernel(DType type, RedOp op) {
  if (!isSum(op) || traits(type).family == Family::Integer) return nullptr;
  return traits(type).family == Family::Half ? halfSpread(type) : floatSpread(type);
}

ScaleFn scaleKernel(DType type) {
  switch (traits(type).family) {
    case Family::Integer:
      return integerScale(type);
    case Family::Float:
      return floatScale(type);
    case Family::Half:
      return halfScale(type);
  }
  return nullptr;
}

void finish(DType type, void* data, size_t count, uint64_t divisor) {
  if (divisor == 1) return;
  const void* source = data;
  foldKernel(type, RedOp::Avg)(data, &source, 1, count, divisor);
}

}  // namespace weft
