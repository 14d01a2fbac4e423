// SPDX-License-Identifier: Apache-2.0
// The targets of the kernels, the best last, and the choice between them. The sources of the kernels follow this once
// for each, with HWY_TARGET defined.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define HWY_SCALAR 0
#define HWY_EMU128 1  // 16 bytes, by the instructions that the file is compiled for
#define HWY_AVX2 2    // 32 bytes, on processors that have AVX2
#define HWY_AVX3 3    // 64 bytes: AVX-512

namespace weft::hwy {

struct float16_t;  // names the type; its bits are uint16_t

template <class T>
constexpr bool IsFloat() {
  return std::is_floating_point_v<T>;
}

template <size_t kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using Type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using Type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using Type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using Type = uint64_t;
};

#if defined(__x86_64__)
inline bool hasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
inline bool hasAvx3() {
  return hasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}
#endif

}  // namespace weft::hwy

#define HWY_EXPORT(function) static_assert(true)
#if defined(__x86_64__)
#define HWY_DYNAMIC_DISPATCH(function) \
  (hwy::hasAvx3() ? N_AVX3::function : hwy::hasAvx2() ? N_AVX2::function : N_EMU128::function)
#else
#define HWY_DYNAMIC_DISPATCH(function) N_EMU128::function
#endif
