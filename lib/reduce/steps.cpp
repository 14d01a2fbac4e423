// SPDX-License-Identifier: Apache-2.0
#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/steps.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstddef>

#include "reduce/adam-inl.h"
#include "reduce/steps.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

struct LambUpdate {
  Moments moments;
  const float* w;
  float* update;

  template <class D>
  HWY_INLINE void operator()(D d, size_t i) const {
    const auto decay = times(loadFloats(d, w + i), moments.c.decay);
    storeFloats(d, hn::Add(moments.direction(d, i), decay), update + i);
  }
};

struct SgdStep {
  const SgdFactors& c;
  float* w;
  const float* gradients;
  float* buffer;

  template <class D>
  HWY_INLINE void operator()(D d, size_t i) const {
    const auto old = loadFloats(d, w + i);
    const auto scaled = times(loadFloats(d, gradients + i), c.gradientScale);
    const auto g = hn::Add(scaled, times(old, c.weightDecay));
    storeFloats(d, hn::Sub(old, times(direction(d, g, i), c.rate)), w + i);
  }

 private:
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V direction(D d, V g, size_t i) const {
    if (!c.hasMomentum) return g;
    const V sum = c.firstStep ? g : hn::Add(times(loadFloats(d, buffer + i), c.momentum), g);
    storeFloats(d, sum, buffer + i);
    return c.nesterov ? hn::Add(g, times(sum, c.momentum)) : sum;
  }
};

struct Apply {
  float rate;
  float* w;
  const float* update;

  template <class D>
  HWY_INLINE void operator()(D d, size_t i) const {
    const auto change = times(loadFloats(d, update + i), rate);
    storeFloats(d, hn::Sub(loadFloats(d, w + i), change), w + i);
  }
};

void adamW(const AdamFactors& c, float keep, size_t n, float* w, const float* gradients, float* m,
           float* v) {
  forElements(n, AdamWStep{{c, gradients, m, v}, keep, w});
}

void lambUpdate(const AdamFactors& c, size_t n, const float* w, const float* gradients, float* m,
                float* v, float* update) {
  forElements(n, LambUpdate{{c, gradients, m, v}, w, update});
}

void sgd(const SgdFactors& c, size_t n, float* w, const float* gradients, float* buffer) {
  forElements(n, SgdStep{c, w, gradients, buffer});
}

void apply(float rate, size_t n, float* w, const float* update) {
  forElements(n, Apply{rate, w, update});
}

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::reduce {

HWY_EXPORT(adamW);
HWY_EXPORT(lambUpdate);
HWY_EXPORT(sgd);
HWY_EXPORT(apply);

void adamWPiece(const AdamFactors& c, float keep, size_t n, float* w, const float* gradients,
                float* m, float* v) {
  HWY_DYNAMIC_DISPATCH(adamW)(c, keep, n, w, gradients, m, v);
}

void lambPiece(const AdamFactors& c, size_t n, const float* w, const float* gradients, float* m,
               float* v, float* update) {
  HWY_DYNAMIC_DISPATCH(lambUpdate)(c, n, w, gradients, m, v, update);
}

void sgdPiece(const SgdFactors& c, size_t n, float* w, const float* gradients, float* buffer) {
  HWY_DYNAMIC_DISPATCH(sgd)(c, n, w, gradients, buffer);
}

void applyPiece(float rate, size_t n, float* w, const float* update) {
  HWY_DYNAMIC_DISPATCH(apply)(rate, n, w, update);
}

}  // namespace weft::reduce
#endif
