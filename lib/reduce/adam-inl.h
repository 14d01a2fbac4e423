// SPDX-License-Identifier: Apache-2.0
// AdamW on vectors of elements.
#if defined(WEFT_REDUCE_ADAM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_REDUCE_ADAM_INL_H
#undef WEFT_REDUCE_ADAM_INL_H
#else
#define WEFT_REDUCE_ADAM_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>

#include "reduce/floats-inl.h"
#include "reduce/steps.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

// How far ahead of the arithmetic state comes into the cache: what the processor fetches by itself
// is late, with so many arrays and so much to do between them.
constexpr size_t kAhead = 256;

template <class D>
HWY_INLINE hn::Vec<D> loadState(D d, const float* from) {
  hwy::Prefetch(from + kAhead);
  return loadFloats(d, from);
}

// a * factor
template <class V>
HWY_INLINE V times(V a, float factor) {
  return hn::Mul(a, hn::Set(hn::DFromV<V>(), factor));
}

// The moments of Adam, changed in place.
struct Moments {
  const AdamFactors& c;
  const float* gradients;
  float* m;
  float* v;

  template <class V>
  struct New {
    V g, mean, deviation;  // sqrt(v) + epsilon
  };

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE New<V> advance(D d, size_t i) const {
    const auto g = times(loadFloats(d, gradients + i), c.gradientScale);
    const auto mean = hn::Add(times(loadState(d, m + i), c.beta1), times(g, c.rest1));
    const auto square = hn::Mul(times(g, c.rest2), g);
    const auto variance = hn::Add(times(loadState(d, v + i), c.beta2), square);
    storeFloats(d, mean, m + i);
    storeFloats(d, variance, v + i);
    return {g, mean, hn::Add(hn::Sqrt(variance), hn::Set(d, c.epsilon))};
  }

  // m / (sqrt(v) + epsilon) of the new moments, m times `rate` first.
  template <class D>
  HWY_INLINE hn::Vec<D> direction(D d, size_t i) const {
    const auto now = advance(d, i);
    return hn::Div(times(now.mean, c.rate), now.deviation);
  }
};

struct AdamWStep {
  Moments moments;
  float keep;
  float* w;

  template <class D>
  HWY_INLINE void operator()(D d, size_t i) const {
    const auto kept = times(loadState(d, w + i), keep);
    storeFloats(d, hn::Sub(kept, moments.direction(d, i)), w + i);
  }
};

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
