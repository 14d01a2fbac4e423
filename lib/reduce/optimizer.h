// SPDX-License-Identifier: Apache-2.0
// The arithmetic of sharded optimizers: what follows the reduction of gradients, and the steps.
//
// Each kernel is one pass over its arrays, meant for chunks that are in cache. What reduce.h
// says of bits, NaNs and denormals holds here; pointers need the alignment of their elements.
// Arithmetic is in float, each operation rounded once (no fused multiply-add), in the order written
// below.
//
// Every call says the *logical* index of its first element, its place in the model rather than in
// a shard. Random bits come from it (rounding.h), and sums of squares are taken on a grid: a block
// is kGrid elements, [k * kGrid, (k + 1) * kGrid); its squares are summed in double in a fixed
// order; the sums of blocks are added exactly (exact_sum.h). So callers who cut the model at
// multiples of kGrid get the same sums however they cut it, and in whatever order they call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reduce/exact_sum.h"
#include "reduce/reduce.h"
#include "reduce/rounding.h"

namespace weft::reduce {

constexpr size_t kGrid = 1024;

// ---- gradients ------------------------------------------------------------------------------

// What is known of the gradients of all calls that it was passed to.
struct GradientStats {
  static constexpr uint64_t kNone = UINT64_MAX;
  ExactSum squares;
  uint64_t nonFinite = 0;           // infinities and NaNs
  uint64_t firstNonFinite = kNone;  // the lowest logical index of one
};

struct Addend {
  const void* data;
  DType type;  // F32, F16 or BF16

  Addend from(uint64_t i) const {
    return {static_cast<const std::byte*>(data) + i * sizeOf(type), type};
  }
};

// dst[i] = (addend[0][i] + addend[1][i] + ...) * scale, or with `accumulate` dst[i] + that; one
// addend or more. `stats` (or null) takes what is left in dst. dst may be equal to an addend of
// F32; it must not overlap one otherwise.
void foldGradients(float* dst, std::span<const Addend> addends, float scale, bool accumulate,
                   size_t n, uint64_t first, GradientStats* stats);

// The same with scale 1 into a dst that nobody reads soon: past the caches.
void foldGradientsStream(float* dst, std::span<const Addend> addends, size_t n, uint64_t first,
                         GradientStats* stats);

// ---- steps ----------------------------------------------------------------------------------

// The slice of the model that a step works on.
struct StepSlice {
  uint64_t first = 0;  // logical index
  size_t n = 0;
  // F32, or F16 or BF16 for training without a master copy: the step is in float, then `rounding`.
  void* weights = nullptr;
  DType weightType = DType::F32;
  const float* gradients = nullptr;
  // If not null, where the new weights go, too, rounded to outType: F32, F16 or BF16.
  void* out = nullptr;
  DType outType = DType::BF16;
  Rounding rounding = {};
};

// AdamW (Loshchilov and Hutter), as torch.optim.AdamW computes it:
//   g = gradient * gradientScale          w = w * (1 - learningRate * weightDecay)
//   m = m * beta1 + g * (1 - beta1)       v = v * beta2 + (g * (1 - beta2)) * g
//   w = w - (m * (learningRate / (1 - beta1^step) * root)) / (sqrt(v) + epsilon * root)
//   with root = sqrt(1 - beta2^step), which divides sqrt(v) in torch: here the quotient is expanded
//   by it, which spares a division and rounds otherwise
struct AdamW {
  double learningRate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0.01;
  double gradientScale = 1;  // carries the clipping
  int64_t step = 1;          // from 1
};
void stepAdamW(const AdamW& settings, const StepSlice& slice, float* m, float* v);

// All that lies between the wire and new parameters.
struct FusedSlice {
  uint64_t first = 0;  // logical index
  size_t n = 0;
  float *weights = nullptr, *m = nullptr, *v = nullptr;
  std::span<const Addend> gradients;
  std::span<void* const> out;  // all who get the new weights, rounded to outType: F16 or BF16
  DType outType = DType::BF16;
  Rounding rounding = {};
};
// foldGradients with scale 1, stepAdamW and castFloats in one pass, with the same bits. The results
// are stored past the caches, to all at once; sums are stored nowhere. `stats` may be null.
void foldAndStepAdamW(const AdamW& settings, const FusedSlice& slice, GradientStats* stats);

// Momentum SGD, as torch.optim.SGD computes it:
//   g = gradient * gradientScale + w * weightDecay
//   buffer = buffer * momentum + g, in the first step g
//   w = w - (nesterov ? g + buffer * momentum : buffer) * learningRate
// Without momentum it is w - g * learningRate, and buffer may be null.
struct Sgd {
  double learningRate = 1e-3;
  double momentum = 0;
  double weightDecay = 0;
  bool nesterov = false;
  double gradientScale = 1;
  bool firstStep = false;
};
void stepSgd(const Sgd& settings, const StepSlice& slice, float* buffer);

// LAMB (You et al.), in two phases around the norms of each parameter tensor. m and v are those of
// AdamW, whose settings it has, then
//   update = (m * (1 / (1 - beta1^step) * root)) / (sqrt(v) + epsilon * root) + w * weightDecay
// The first phase changes m and v and adds up the squares of w and of the update (null: not). It
// reads neither the learning rate nor, of the slice, `out` and `rounding`.
void updateLamb(const AdamW& settings, const StepSlice& slice, float* m, float* v, float* update,
                ExactSum* weightSquares, ExactSum* updateSquares);

// The second phase: w = w - update * rate, where rate is the learning rate times the trust ratio
// |w| / |update| (1 where one of them is 0). It does not read the slice's gradients.
void applyUpdate(double rate, const StepSlice& slice, const float* update);

// The squares of elements that begin at logical index `first`.
void addSquares(const float* data, uint64_t first, size_t n, ExactSum* squares);

// LANS (Zheng et al., arXiv 2006.13484): LAMB on gradients that are divided by the norm of their
// parameter tensor, which gradientScale carries here, with Nesterov's momentum: a step of beta1
// parts by the moments and 1 - beta1 by the gradient, each with a trust ratio of its own. With m, v
// and root of AdamW
//   r = (m * (1 / (1 - beta1^step) * root)) / (sqrt(v) + epsilon * root) + w * weightDecay
//   c = (g * root) / (sqrt(v) + epsilon * root) + w * weightDecay
// The first phase changes m and v and adds up the squares of w, r and c, of which it stores none.
struct LansSquares {
  ExactSum weights, momentum, gradient;
};
void updateLans(const AdamW& settings, const StepSlice& slice, float* m, float* v,
                LansSquares* squares);

// The second phase, of what the first has left: w = w - (r * momentumRate + c * gradientRate). The
// rates are the learning rate times beta1 * |w| / |r| and times (1 - beta1) * |w| / |c|.
void applyLans(const AdamW& settings, double momentumRate, double gradientRate,
               const StepSlice& slice, const float* m, const float* v);

}  // namespace weft::reduce
