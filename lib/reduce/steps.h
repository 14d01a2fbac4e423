// SPDX-License-Identifier: Apache-2.0
// Inside lib/reduce: the steps of optimizers on floats, element by element.
#pragma once

#include <cstddef>

namespace weft::reduce {

// AdamW's and LAMB's.
struct AdamFactors {
  float gradientScale;
  float beta1, rest1;  // 1 - beta1
  float beta2, rest2;
  float rate;     // of the mean, with both bias corrections
  float epsilon;  // with that of the variance
  float decay;
  float root;  // the bias correction of the variance, of which both have their part
};

// Of LANS's two directions: the learning rate, the beta and the trust ratio.
struct LansRates {
  float momentum, gradient;
};

struct SgdFactors {
  float rate, momentum, weightDecay, gradientScale;
  bool hasMomentum, nesterov, firstStep;
};

// keep: what decay leaves of a weight.
void adamWPiece(const AdamFactors& c, float keep, size_t n, float* w, const float* gradients,
                float* m, float* v);
void lambPiece(const AdamFactors& c, size_t n, const float* w, const float* gradients, float* m,
               float* v, float* update);
// Changes the moments; the two directions of the new ones.
void lansPiece(const AdamFactors& c, size_t n, const float* w, const float* gradients, float* m,
               float* v, float* momentum, float* gradient);
void applyLansPiece(const AdamFactors& c, const LansRates& rates, size_t n, float* w,
                    const float* gradients, const float* m, const float* v);
void sgdPiece(const SgdFactors& c, size_t n, float* w, const float* gradients, float* buffer);
void applyPiece(float rate, size_t n, float* w, const float* update);

}  // namespace weft::reduce
