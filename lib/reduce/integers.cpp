// SPDX-License-Identifier: Apache-2.0
#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/integers.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstring>
#include <type_traits>

#include "reduce/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

// x / divisor, toward zero. Exact in double for 32 bits: a quotient of two such numbers that is no
// integer is further from the next one than a double's rounding.
template <class T>
HWY_INLINE T quotient(T x, uint64_t divisor) {
  if constexpr (sizeof(T) <= 4) {
    return static_cast<T>(static_cast<double>(x) / static_cast<double>(divisor));
  } else if constexpr (std::is_unsigned_v<T>) {
    return x / divisor;
  } else {
    const auto bits = static_cast<uint64_t>(x);
    return static_cast<T>(x < 0 ? 0 - (0 - bits) / divisor : bits / divisor);
  }
}

template <class T>
void divideAll(void* data, size_t count, uint64_t divisor) {
  auto* bytes = static_cast<std::byte*>(data);
  for (size_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, bytes + i * sizeof(T), sizeof(T));
    x = quotient(x, divisor);
    std::memcpy(bytes + i * sizeof(T), &x, sizeof(T));
  }
}

template <class P, class Op>
HWY_NOINLINE void foldWrapping(void* dst, const void* const* src, size_t n, size_t count) {
  if (n == 1) return copyBytes(dst, src[0], count * P::One::kBytes);
  foldAll<P, Op, false>(only(dst), src, n, count, Keep(1));
}

// The FoldFn of T, on the packets P. The division is rare and takes a second pass.
template <class T, class P, class Op>
void foldIntegers(void* dst, const void* const* src, size_t n, size_t count, uint64_t divisor) {
  foldWrapping<P, Op>(dst, src, n, count);
  if (divisor != 1) divideAll<T>(dst, count, divisor);
}

template <class T>
using Integers = Native<hn::ScalableTag<T>>;

// Sums and products wrap around, so both signs share the unsigned ones.
template <class T>
using Wrapping = Integers<std::make_unsigned_t<T>>;

template <class T>
using Factors =
    std::conditional_t<sizeof(T) == 1, WideBytes<hn::ScalableTag<uint16_t>>, Wrapping<T>>;

// Bits know no width: all types share the kernels of bytes.
template <class T, class Op>
void foldBits(void* dst, const void* const* src, size_t n, size_t count, uint64_t) {
  foldWrapping<Integers<uint8_t>, Op>(dst, src, n, count * sizeof(T));
}

template <class T>
Kernels integersOf(RedOp op) {
  constexpr ScaleFn kScale = scaleAll<Factors<T>, Keep>;
  switch (op) {
    case RedOp::Prod:
      return {foldIntegers<T, Factors<T>, Prod>, nullptr, kScale};
    case RedOp::Max:
      return {foldIntegers<T, Integers<T>, Max>, nullptr, kScale};
    case RedOp::Min:
      return {foldIntegers<T, Integers<T>, Min>, nullptr, kScale};
    case RedOp::Band:
      return {foldBits<T, Band>, nullptr, kScale};
    case RedOp::Bor:
      return {foldBits<T, Bor>, nullptr, kScale};
    case RedOp::Bxor:
      return {foldBits<T, Bxor>, nullptr, kScale};
    default:
      return {foldIntegers<T, Wrapping<T>, Sum>, nullptr, kScale};
  }
}

Kernels resolveIntegers(DType type, RedOp op) {
  switch (type) {
    case DType::I8:
      return integersOf<int8_t>(op);
    case DType::U8:
      return integersOf<uint8_t>(op);
    case DType::I32:
      return integersOf<int32_t>(op);
    case DType::U32:
      return integersOf<uint32_t>(op);
    case DType::I64:
      return integersOf<int64_t>(op);
    default:
      return integersOf<uint64_t>(op);
  }
}

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::reduce {

HWY_EXPORT(resolveIntegers);

Kernels integerKernels(DType type, RedOp op) {
  return HWY_DYNAMIC_DISPATCH(resolveIntegers)(type, op);
}

}  // namespace weft::reduce
#endif
