// SPDX-License-Identifier: Apache-2.0
// The arithmetic of collectives: element-wise folds of typed arrays in host memory.
//
// Kernels are plain functions, compiled for several instruction sets (Highway) and chosen once, at
// plan compile, for the CPU at hand. They hold no state, allocate nothing, and may be called from
// any thread.
//
// Same bits everywhere. A result depends on the inputs and their order alone: never on the
// instruction set, the alignment, an element's position, or the split of an array over calls. For
// that:
//   - 16-bit floats are widened to float, folded in the order given, and rounded once at the end, to
//     nearest even, also into and out of the denormals.
//   - Every NaN that comes out of an operation is the type's positive quiet NaN with an empty
//     payload.
//   - max and min are IEEE 754-2019 maximum and minimum: a NaN in any source gives NaN, and
//     -0 < +0.
//   - Integer sums and products wrap around.
// It assumes the default floating-point environment: round to nearest, denormals not flushed.
//
// Pointers need no alignment. `dst` may be equal to any source; it must not overlap one otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::reduce {

// Numbered as in weft.h and NCCL.
enum class DType : uint8_t { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16 };
// Band, Bor and Bxor are bitwise: of integers only. Epilogue adds, and gives the complete sums to the
// caller's code (plan/epilogue.h).
enum class RedOp : uint8_t { Sum, Prod, Max, Min, Avg, Band, Bor, Bxor, PreMulSum, Epilogue };

constexpr bool isFloat(DType type) { return type >= DType::F16; }
constexpr bool isBitwise(RedOp op) { return op >= RedOp::Band && op <= RedOp::Bxor; }

// Bytes of an element, by DType. Every call asks, so it is no call itself.
inline constexpr std::array<std::uint8_t, 10> kSizes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
constexpr size_t sizeOf(DType type) { return kSizes[static_cast<size_t>(type)]; }
const char* name(DType type);  // as in nccl-tests: "float", "bfloat16", ...
const char* name(RedOp op);    // as in nccl-tests: "sum", ..., "mulsum"

// dst[i] = (src[0][i] op src[1][i] op ... op src[n-1][i]) / divisor, i < count, n >= 1, divisor
// >= 1. Avg and PreMulSum add. The division is for Avg: floats round it to nearest, 16-bit floats
// only with the final rounding; integers truncate toward zero, after the sum has wrapped around.
// One source and divisor 1 is a copy, which keeps the bits of a NaN.
using FoldFn = void (*)(void* dst, const void* const* src, size_t n, size_t count,
                        uint64_t divisor);
FoldFn foldKernel(DType type, RedOp op);

// The same results stored to dst[0] .. dst[targets - 1], past the caches: for big outputs that are
// not read again soon. No target may be a source: in place, plain stores are faster. Non-temporal
// if the targets lie alike to a vector's border. The stores are ordered before the return: the
// caller needs no fence. Sums of floats have such kernels; nullptr for others.
using SpreadFn = void (*)(void* const* dst, size_t targets, const void* const* src, size_t n,
                          size_t count, uint64_t divisor);
SpreadFn spreadKernel(DType type, RedOp op);

// dst[i] = src[i] * *scalar; the scalar is one element of the same type. The pre-multiply of
// PreMulSum.
using ScaleFn = void (*)(void* dst, const void* src, size_t count, const void* scalar);
ScaleFn scaleKernel(DType type);

// data[i] = data[i] / divisor, divided as in FoldFn: the last step of Avg by itself.
void finish(DType type, void* data, size_t count, uint64_t divisor);

// Copies to dst[0] .. dst[targets - 1] with non-temporal stores, for big destinations that are not
// read again soon; one that is the source is left alone. Ordered as above.
void copyStream(void* const* dst, size_t targets, const void* src, size_t bytes);

}  // namespace weft::reduce
