// SPDX-License-Identifier: Apache-2.0
// Vectors of floats from and to memory, in the order of the elements, for the optimizer kernels.
#if defined(WEFT_REDUCE_FLOATS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_REDUCE_FLOATS_INL_H
#undef WEFT_REDUCE_FLOATS_INL_H
#else
#define WEFT_REDUCE_FLOATS_INL_H
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reduce/optimizer.h"
#include "reduce/packet-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

// At most 16 lanes: what sums and random bits are laid out for.
using FloatTag = hn::CappedTag<float, 16>;
using OneFloat = hn::CappedTag<float, 1>;
constexpr size_t kFloats = hn::MaxLanes(FloatTag());

// One NaN for all.
template <class V>
HWY_INLINE V oneNaN(V v) {
  const V nan = hn::Set(hn::DFromV<V>(), std::numeric_limits<float>::quiet_NaN());
  return hn::IfThenElse(hn::IsNaN(v), nan, v);
}

template <class D>
HWY_INLINE hn::Vec<D> loadFloats(D d, const float* from) {
  return loadAny(d, reinterpret_cast<const std::byte*>(from));
}

template <class D>
HWY_INLINE void storeFloats(D d, hn::Vec<D> v, float* to) {
  storeAny(oneNaN(v), d, reinterpret_cast<std::byte*>(to));
}

// The element types, by how a vector of element i and those that follow is loaded as floats.
struct FromF32 {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const void* from, size_t i) {
    return loadFloats(d, static_cast<const float*>(from) + i);
  }
};

struct FromBF16 {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const void* from, size_t i) {
    const hn::Rebind<uint16_t, D> narrow;
    const hn::Rebind<uint32_t, D> wide;
    const auto halves = loadAny(narrow, static_cast<const std::byte*>(from) + i * sizeof(uint16_t));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, halves)));
  }
};

struct FromF16 {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D, const void* from, size_t i) {
    return Float16<D>::load(static_cast<const std::byte*>(from) + i * sizeof(uint16_t));
  }
};

// Sums of gradients of any type.
template <class D, size_t kCount>
using Vectors = std::array<hn::Vec<D>, kCount>;

// sum += n vectors of an addend from element i on.
template <class From, class D, size_t kCount>
HWY_INLINE void addTo(Vectors<D, kCount>& sum, D d, const void* from, size_t i) {
  for (size_t k = 0; k < kCount; ++k)
    sum[k] = hn::Add(sum[k], From::load(d, from, i + k * hn::MaxLanes(d)));
}

template <class D, size_t kCount>
HWY_INLINE void addAddend(Vectors<D, kCount>& sum, D d, const Addend& addend, size_t i) {
  switch (addend.type) {
    case DType::BF16:
      return addTo<FromBF16, D, kCount>(sum, d, addend.data, i);
    case DType::F16:
      return addTo<FromF16, D, kCount>(sum, d, addend.data, i);
    default:
      return addTo<FromF32, D, kCount>(sum, d, addend.data, i);
  }
}

// Calls step(d, i) for all i < n, by vectors and then one by one.
template <class Step>
HWY_INLINE void forElements(size_t n, const Step& step) {
  size_t i = 0;
  for (; i + kFloats <= n; i += kFloats) step(FloatTag(), i);
  for (; i < n; ++i) step(OneFloat(), i);
}

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
