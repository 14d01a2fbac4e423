// SPDX-License-Identifier: Apache-2.0
// What weft's kernels use of Highway, made of the compiler's own vectors (GCC and Clang): the names and the meaning are
// Highway's, the namespace is weft's. It is compiled once a target, and so has no guard: foreach_target.h says which.

#undef HWY_INLINE
#undef HWY_NOINLINE
#undef HWY_NAMESPACE
#undef HWY_BEFORE_NAMESPACE
#undef HWY_AFTER_NAMESPACE
#undef WEFT_VECTOR_BYTES
#undef WEFT_INSTRUCTIONS
#undef WEFT_PRAGMA
#undef WEFT_OPTIMIZED
#undef WEFT_TARGETED

#if defined(__OPTIMIZE__)
#define HWY_INLINE inline __attribute__((always_inline))
#else
#define HWY_INLINE inline  // or a compiler that does not optimize takes longer than one that does
#endif
#define HWY_NOINLINE __attribute__((noinline))

#if HWY_TARGET == HWY_AVX3
#define HWY_NAMESPACE N_AVX3
#define WEFT_VECTOR_BYTES 64
#define WEFT_INSTRUCTIONS "avx2,f16c,avx512f,avx512vl,avx512bw,avx512dq"
#elif HWY_TARGET == HWY_AVX2
#define HWY_NAMESPACE N_AVX2
#define WEFT_VECTOR_BYTES 32
#define WEFT_INSTRUCTIONS "avx2,f16c"
#else
#define HWY_NAMESPACE N_EMU128
#define WEFT_VECTOR_BYTES 16
#endif

// The functions between these two may use the target's instructions, whatever the file is compiled for. With -O2 GCC leaves
// loops over a few vectors as they are.
#define WEFT_PRAGMA(words) _Pragma(#words)
#if HWY_TARGET == HWY_EMU128
#define HWY_BEFORE_NAMESPACE() static_assert(true)
#define HWY_AFTER_NAMESPACE() static_assert(true)
#elif defined(__clang__)
#define WEFT_TARGETED(set) \
  WEFT_PRAGMA(clang attribute push(__attribute__((target(set))), apply_to = function))
#define HWY_BEFORE_NAMESPACE() WEFT_TARGETED(WEFT_INSTRUCTIONS) static_assert(true)
#define HWY_AFTER_NAMESPACE() _Pragma("clang attribute pop") static_assert(true)
#else
#if defined(__OPTIMIZE__)
#define WEFT_OPTIMIZED WEFT_PRAGMA(GCC optimize("O3"))
#else
#define WEFT_OPTIMIZED
#endif
#define WEFT_TARGETED(set) WEFT_OPTIMIZED WEFT_PRAGMA(GCC target set)
#define HWY_BEFORE_NAMESPACE() \
  WEFT_PRAGMA(GCC push_options) WEFT_TARGETED(WEFT_INSTRUCTIONS) static_assert(true)
#define HWY_AFTER_NAMESPACE() WEFT_PRAGMA(GCC pop_options) static_assert(true)
#endif

HWY_BEFORE_NAMESPACE();
namespace weft::hwy::HWY_NAMESPACE {

// ---- Types: a tag names so many lanes of a type; a vector is the compiler's.

template <class T, size_t kLanes>
struct Simd {
  using Lane = T;
  using Vector __attribute__((vector_size(kLanes * sizeof(T)))) = T;
};
template <size_t kLanes>
struct Simd<float16_t, kLanes> : Simd<uint16_t, kLanes> {
  using Lane = float16_t;
};

template <class T>
using ScalableTag = Simd<T, WEFT_VECTOR_BYTES / sizeof(T)>;
template <class T, size_t kMost>
using CappedTag = Simd<T, std::min<size_t>(kMost, WEFT_VECTOR_BYTES / sizeof(T))>;

template <class T, size_t kLanes>
constexpr size_t MaxLanes(Simd<T, kLanes>) {
  return kLanes;
}
template <class T, size_t kLanes>
constexpr size_t Lanes(Simd<T, kLanes>) {
  return kLanes;
}

template <class D>
using TFromD = typename D::Lane;
template <class D>
using Vec = typename D::Vector;
template <class V>
using LaneType = std::remove_cvref_t<decltype(std::declval<V>()[0])>;
template <class V>
using DFromV = Simd<LaneType<V>, sizeof(V) / sizeof(LaneType<V>)>;

// As many lanes of another type, or as many bytes.
template <class T, class D>
using Rebind = Simd<T, MaxLanes(D())>;
template <class T, class D>
using Repartition = Simd<T, sizeof(Vec<D>) / sizeof(T)>;
template <class D>
using RebindToSigned = Rebind<std::make_signed_t<TFromD<D>>, D>;

// Vectors of unsigned integers as wide as the lanes, for their bits.
template <class V>
using BitsOf = Vec<Rebind<typename UnsignedOf<sizeof(LaneType<V>)>::Type, DFromV<V>>>;

// ---- Memory.

template <class D>
HWY_INLINE Vec<D> LoadU(D, const TFromD<D>* from) {
  Vec<D> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class D>
HWY_INLINE void StoreU(Vec<D> v, D, TFromD<D>* to) {
  std::memcpy(to, &v, sizeof v);
}

// To memory that is aligned to the vector; past the caches where the processor can.
template <class D>
HWY_INLINE void Stream(Vec<D> v, D d, TFromD<D>* to) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof v == 64) return _mm512_stream_si512((__m512i*)to, (__m512i)v);
#endif
#if HWY_TARGET != HWY_EMU128
  if constexpr (sizeof v == 32) return _mm256_stream_si256((__m256i*)to, (__m256i)v);
#endif
#if defined(__x86_64__)
  if constexpr (sizeof v == 16) return _mm_stream_si128((__m128i*)to, (__m128i)v);
#endif
  StoreU(v, d, to);
}

template <class D>
HWY_INLINE Vec<D> Set(D, TFromD<D> x) {
  return x - Vec<D>{};  // x - 0 is x, of floats too
}

template <class V>
HWY_INLINE LaneType<V> GetLane(V v) {
  return v[0];
}

// ---- Arithmetic, lane by lane. Integers wrap around.

template <class V>
HWY_INLINE V Add(V a, V b) {
  return a + b;
}
template <class V>
HWY_INLINE V Mul(V a, V b) {
  return a * b;
}
template <class V>
HWY_INLINE V Div(V a, V b) {
  return a / b;
}
template <class V>
HWY_INLINE V Max(V a, V b) {
  return a > b ? a : b;
}
template <class V>
HWY_INLINE V Min(V a, V b) {
  return a < b ? a : b;
}

// uint16: no less than 0.
template <class V>
HWY_INLINE V SaturatedSub(V a, V b) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(V) == 64) return (V)_mm512_subs_epu16((__m512i)a, (__m512i)b);
#endif
#if HWY_TARGET != HWY_EMU128
  if constexpr (sizeof(V) == 32) return (V)_mm256_subs_epu16((__m256i)a, (__m256i)b);
#endif
#if defined(__x86_64__)
  if constexpr (sizeof(V) == 16) return (V)_mm_subs_epu16((__m128i)a, (__m128i)b);
#endif
  return a > b ? a - b : V{};
}

// ---- Comparisons and choices. A mask is what a comparison gives.

template <class V>
HWY_INLINE auto Lt(V a, V b) {
  return a < b;
}
template <class V>
HWY_INLINE auto Gt(V a, V b) {
  return a > b;
}
template <class V>
HWY_INLINE auto Ge(V a, V b) {
  return a >= b;
}
template <class V>
HWY_INLINE auto Eq(V a, V b) {
  return a == b;
}
template <class V>
HWY_INLINE auto IsNaN(V v) {
  return v != v;
}
template <class M, class V>
HWY_INLINE V IfThenElse(M mask, V yes, V no) {
  return mask ? yes : no;
}

// ---- Bits.

template <class D, class V>
HWY_INLINE Vec<D> BitCast(D, V v) {
  static_assert(sizeof(Vec<D>) == sizeof(V));
  return (Vec<D>)v;
}

template <class V>
HWY_INLINE V And(V a, V b) {
  return (V)((BitsOf<V>)a & (BitsOf<V>)b);
}
template <class V>
HWY_INLINE V Or(V a, V b) {
  return (V)((BitsOf<V>)a | (BitsOf<V>)b);
}
template <class V>
HWY_INLINE V Xor(V a, V b) {
  return (V)((BitsOf<V>)a ^ (BitsOf<V>)b);
}
template <class V>
HWY_INLINE V AndNot(V a, V b) {
  return (V)(~(BitsOf<V>)a & (BitsOf<V>)b);
}
template <int kBits, class V>
HWY_INLINE V ShiftLeft(V v) {
  return v << kBits;
}
template <int kBits, class V>
HWY_INLINE V ShiftRight(V v) {
  return v >> kBits;
}
// Of floats.
template <class V>
HWY_INLINE V Abs(V v) {
  return AndNot(Set(DFromV<V>(), LaneType<V>{-0.0f}), v);
}
// uint16: the odd lanes of one and the even ones of the other.
template <class V>
HWY_INLINE V OddEven(V odd, V even) {
  using Pairs = Vec<Repartition<uint32_t, DFromV<V>>>;
  const Pairs isOdd = Pairs{} + 0xFFFF0000u;
  return (V)(((Pairs)odd & isOdd) | ((Pairs)even & ~isOdd));
}

// ---- Conversions.

#if HWY_TARGET == HWY_AVX3
constexpr __mmask16 kAllLanes = 0xFFFF;  // GCC 12 warns of its own header where there is no mask
#endif

// Integers to wider ones; bits of binary16 to floats.
template <class D, class V>
HWY_INLINE Vec<D> PromoteTo(D, V v) {
#if HWY_TARGET != HWY_EMU128
  if constexpr (std::is_same_v<TFromD<D>, float>) {
    if constexpr (MaxLanes(D()) == 1) {
      return Vec<D>{_cvtsh_ss(v[0])};
    } else if constexpr (MaxLanes(D()) == 4) {
      return (Vec<D>)_mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(&v)));
    } else if constexpr (MaxLanes(D()) == 8) {
      return (Vec<D>)_mm256_cvtph_ps((__m128i)v);
    }
#if HWY_TARGET == HWY_AVX3
    if constexpr (MaxLanes(D()) == 16) return (Vec<D>)_mm512_maskz_cvtph_ps(kAllLanes, (__m256i)v);
#endif
  } else
#endif
    return __builtin_convertvector(v, Vec<D>);
}

// Integers that are in range to narrower ones; floats to bits of binary16, to nearest even.
template <class D, class V>
HWY_INLINE Vec<D> DemoteTo(D, V v) {
#if HWY_TARGET != HWY_EMU128
  if constexpr (std::is_same_v<TFromD<D>, float16_t>) {
    if constexpr (MaxLanes(D()) == 1) {
      return Vec<D>{_cvtss_sh(v[0], _MM_FROUND_TO_NEAREST_INT)};
    } else if constexpr (MaxLanes(D()) == 4) {
      Vec<D> halves;
      _mm_storel_epi64(reinterpret_cast<__m128i*>(&halves),
                       _mm_cvtps_ph((__m128)v, _MM_FROUND_TO_NEAREST_INT));
      return halves;
    } else if constexpr (MaxLanes(D()) == 8) {
      return (Vec<D>)_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
    }
#if HWY_TARGET == HWY_AVX3
    if constexpr (MaxLanes(D()) == 16)
      return (Vec<D>)_mm512_maskz_cvtps_ph(kAllLanes, (__m512)v, _MM_FROUND_TO_NEAREST_INT);
#endif
  } else
#endif
    return __builtin_convertvector(v, Vec<D>);
}

}  // namespace weft::hwy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
