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

// LANS's two directions, of the moments and of the gradient alone, each with the decay.
template <class V>
HWY_INLINE V lansDirection(const AdamFactors& c, V of, float factor, V deviation, V w) {
  return hn::Add(hn::Div(times(of, factor), deviation), times(w, c.decay));
}

struct LansUpdate {
  Moments moments;
  const float* w;
  float* momentum;
  float* gradient;

  template <class D>
  HWY_INLINE void operator()(D d, size_t i) const {
    const AdamFactors& c = moments.c;
    const auto now = moments.advance(d, i);
    const auto old = loadFloats(d, w + i);
    storeFloats(d, lansDirection(c, now.mean, c.rate, now.deviation, old), momentum + i);
    storeFloats(d, lansDirection(c, now.g, c.root, now.deviation, old), gradient + i);
  }
};

// With the same arithmetic, so that the norms are those of what is applied.
struct LansApply {
  const AdamFactors& c;
  LansRates rates;
  float* w;
  const float* gradients;
  const float* m;
  const float* v;

  template <class D>
  HWY_INLINE void operator()(D d, size_t i) const {
    const auto old = loadFloats(d, w + i);
    const auto g = times(loadFloats(d, gradients + i), c.gradientScale);
    const auto deviation = hn::Add(hn::Sqrt(loadState(d, v + i)), hn::Set(d, c.epsilon));
    const auto ofMoments = lansDirection(c, loadState(d, m + i), c.rate, deviation, old);
    const auto ofGradient = lansDirection(c, g, c.root, deviation, old);
    const auto change =
        hn::Add(times(ofMoments, rates.momentum), times(ofGradient, rates.gradient));
    storeFloats(d, hn::Sub(old, change), w + i);
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

void lansUpdate(const AdamFactors& c, size_t n, const float* w, const float* gradients, float* m,
                float* v, float* momentum, float* gradient) {
  forElements(n, LansUpdate{{c, gradients, m, v}, w, momentum, gradient});
}

void lansApply(const AdamFactors& c, const LansRates& rates, size_t n, float* w,
               const float* gradients, const float* m, const float* v) {
  forElements(n, LansApply{c, rates, w, gradients, m, v});
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
HWY_EXPORT(lansUpdate);
HWY_EXPORT(lansApply);
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

void lansPiece(const AdamFactors& c, size_t n, const float* w, const float* gradients, float* m,
               float* v, float* momentum, float* gradient) {
  HWY_DYNAMIC_DISPATCH(lansUpdate)(c, n, w, gradients, m, v, momentum, gradient);
}

void applyLansPiece(const AdamFactors& c, const LansRates& rates, size_t n, float* w,
                    const float* gradients, const float* m, const float* v) {
  HWY_DYNAMIC_DISPATCH(lansApply)(c, rates, n, w, gradients, m, v);
}

void sgdPiece(const SgdFactors& c, size_t n, float* w, const float* gradients, float* buffer) {
  HWY_DYNAMIC_DISPATCH(sgd)(c, n, w, gradients, buffer);
}

void applyPiece(float rate, size_t n, float* w, const float* update) {
  HWY_DYNAMIC_DISPATCH(apply)(rate, n, w, update);
}

}  // namespace weft::reduce
#endif
