// SPDX-License-Identifier: Apache-2.0
// Sums of gradients of any type.
#if defined(WEFT_REDUCE_ADDENDS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_REDUCE_ADDENDS_INL_H
#undef WEFT_REDUCE_ADDENDS_INL_H
#else
#define WEFT_REDUCE_ADDENDS_INL_H
#endif

#include <hwy/highway.h>

#include <array>

#include "reduce/floats-inl.h"
#include "reduce/optimizer.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

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

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
