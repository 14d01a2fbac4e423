// SPDX-License-Identifier: Apache-2.0
#include "reduce/optimizer.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "reduce/fused.h"
#include "reduce/grid.h"
#include "reduce/steps.h"

namespace weft::reduce {
namespace {

std::byte* elementOf(void* data, DType type, size_t i) {
  return static_cast<std::byte*>(data) + i * sizeOf(type);
}

// The weights of a piece as floats: where they are, or in `tile`, which stays in the first-level
// cache.
float* floatsOf(const StepSlice& slice, size_t at, size_t count, float* tile) {
  std::byte* weights = elementOf(slice.weights, slice.weightType, at);
  if (slice.weightType == DType::F32) return reinterpret_cast<float*>(weights);
  widen(slice.weightType, tile, weights, count);
  return tile;
}

// Calls step(w, at, count) for each piece of the slice, with its weights as floats.
template <class Step>
void forPieces(const StepSlice& slice, const Step& step) {
  forGrid(slice.first, slice.n, [&](size_t at, size_t count) {
    alignas(64) float tile[kGrid];
    step(floatsOf(slice, at, count, tile), at, count);
  });
}

// As above, and the step changes the weights: they are rounded to where they belong while in cache.
template <class Step>
void changePieces(const StepSlice& slice, const Step& step) {
  forPieces(slice, [&](float* w, size_t at, size_t count) {
    step(w, at, count);
    const auto roundTo = [&](DType type, void* to) {
      castFloats(type, elementOf(to, type, at), w, count, slice.rounding, slice.first + at);
    };
    if (slice.weightType != DType::F32) roundTo(slice.weightType, slice.weights);
    if (slice.out != nullptr) roundTo(slice.outType, slice.out);
  });
}

AdamFactors factorsOf(const AdamW& s, double learningRate) {
  const auto step = static_cast<double>(s.step);
  const double root = std::sqrt(1 - std::pow(s.beta2, step));
  return {.gradientScale = static_cast<float>(s.gradientScale),
          .beta1 = static_cast<float>(s.beta1),
          .rest1 = static_cast<float>(1 - s.beta1),
          .beta2 = static_cast<float>(s.beta2),
          .rest2 = static_cast<float>(1 - s.beta2),
          .rate = static_cast<float>(learningRate / (1 - std::pow(s.beta1, step)) * root),
          .epsilon = static_cast<float>(s.epsilon * root),
          .decay = static_cast<float>(s.weightDecay),
          .root = static_cast<float>(root)};
}

float keepOf(const AdamW& s) { return static_cast<float>(1 - s.learningRate * s.weightDecay); }

// The sums of a piece.
void foldPiece(std::span<const Addend> addends, uint64_t first, size_t at, size_t count,
               float* sums, GradientStats* stats) {
  std::vector<Addend> from(addends.begin(), addends.end());
  for (Addend& a : from) a = a.from(at);
  foldGradients(sums, from, 1, false, count, first + at, stats);
}

// For part of a grid block, or unaligned targets: the fused pass in separate ones.
void stepPiece(const AdamFactors& c, float keep, const FusedSlice& s, size_t at, size_t count,
               GradientStats* stats) {
  std::array<float, kGrid> sums;
  std::array<uint16_t, kGrid> rounded;
  foldPiece(s.gradients, s.first, at, count, sums.data(), stats);
  adamWPiece(c, keep, count, s.weights + at, sums.data(), s.m + at, s.v + at);
  castFloats(s.outType, rounded.data(), s.weights + at, count, s.rounding, s.first + at);
  for (void* to : s.out) std::memcpy(elementOf(to, s.outType, at), rounded.data(), count * 2);
}

// For a whole block. What is not finite is found in its sums.
void addStats(std::span<const Addend> addends, uint64_t first, size_t at, double squares,
              GradientStats* stats) {
  if (stats == nullptr) return;
  if (std::isfinite(squares)) return stats->squares.add(squares);
  std::array<float, kGrid> sums;
  foldPiece(addends, first, at, kGrid, sums.data(), stats);
}

// Is the first whole block from logical index `first` on aligned for vectors in `data`?
bool isAligned(const void* data, DType type, uint64_t first) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return (address + (0 - first) % kGrid * sizeOf(type)) % 64 == 0;
}

}  // namespace

void foldGradientsStream(float* dst, std::span<const Addend> addends, size_t n, uint64_t first,
                         GradientStats* stats) {
  const bool aligned = isAligned(dst, DType::F32, first);
  forGrid(first, n, [&](size_t at, size_t count) {
    if (count < kGrid || !aligned) return foldPiece(addends, first, at, count, dst + at, stats);
    addStats(addends, first, at, foldFusedBlock(addends, at, dst + at), stats);
  });
  hwy::FlushStream();
}

void stepAdamW(const AdamW& s, const StepSlice& slice, float* m, float* v) {
  const AdamFactors c = factorsOf(s, s.learningRate);
  const float keep = keepOf(s);
  changePieces(slice, [&](float* w, size_t at, size_t count) {
    adamWPiece(c, keep, count, w, slice.gradients + at, m + at, v + at);
  });
}

void foldAndStepAdamW(const AdamW& settings, const FusedSlice& s, GradientStats* stats) {
  const AdamFactors c = factorsOf(settings, settings.learningRate);
  const float keep = keepOf(settings);
  const bool aligned =
      std::ranges::all_of(s.out, [&](const void* to) { return isAligned(to, s.outType, s.first); });
  forGrid(s.first, s.n, [&](size_t at, size_t count) {
    if (count < kGrid || !aligned) return stepPiece(c, keep, s, at, count, stats);
    const double squares = stepFusedBlock({c, keep, s.first + at, at, s.weights + at, s.m + at,
                                           s.v + at, s.gradients, s.out, s.outType, s.rounding});
    addStats(s.gradients, s.first, at, squares, stats);
  });
  hwy::FlushStream();
}

void stepSgd(const Sgd& s, const StepSlice& slice, float* buffer) {
  const bool hasMomentum = s.momentum != 0;
  const SgdFactors c{.rate = static_cast<float>(s.learningRate),
                     .momentum = static_cast<float>(s.momentum),
                     .weightDecay = static_cast<float>(s.weightDecay),
                     .gradientScale = static_cast<float>(s.gradientScale),
                     .hasMomentum = hasMomentum,
                     .nesterov = s.nesterov,
                     .firstStep = s.firstStep};
  changePieces(slice, [&](float* w, size_t at, size_t count) {
    sgdPiece(c, count, w, slice.gradients + at, hasMomentum ? buffer + at : nullptr);
  });
}

void updateLamb(const AdamW& s, const StepSlice& slice, float* m, float* v, float* update,
                ExactSum* weightSquares, ExactSum* updateSquares) {
  const AdamFactors c = factorsOf(s, 1);
  forPieces(slice, [&](const float* w, size_t at, size_t count) {
    lambPiece(c, count, w, slice.gradients + at, m + at, v + at, update + at);
    const auto addSquares = [&](ExactSum* sum, const float* of) {
      if (sum != nullptr) sum->add(sumOfSquares(of, count, slice.first + at));
    };
    addSquares(weightSquares, w);
    addSquares(updateSquares, update + at);
  });
}

void addSquares(const float* data, uint64_t first, size_t n, ExactSum* squares) {
  forGrid(first, n, [&](size_t at, size_t count) {
    squares->add(sumOfSquares(data + at, count, first + at));
  });
}

void updateLans(const AdamW& s, const StepSlice& slice, float* m, float* v, LansSquares* squares) {
  const AdamFactors c = factorsOf(s, 1);
  forPieces(slice, [&](const float* w, size_t at, size_t count) {
    alignas(64) float momentum[kGrid], gradient[kGrid];
    lansPiece(c, count, w, slice.gradients + at, m + at, v + at, momentum, gradient);
    const uint64_t first = slice.first + at;
    squares->weights.add(sumOfSquares(w, count, first));
    squares->momentum.add(sumOfSquares(momentum, count, first));
    squares->gradient.add(sumOfSquares(gradient, count, first));
  });
}

void applyLans(const AdamW& s, double momentumRate, double gradientRate, const StepSlice& slice,
               const float* m, const float* v) {
  const AdamFactors c = factorsOf(s, 1);
  const LansRates rates{static_cast<float>(momentumRate), static_cast<float>(gradientRate)};
  changePieces(slice, [&](float* w, size_t at, size_t count) {
    applyLansPiece(c, rates, count, w, slice.gradients + at, m + at, v + at);
  });
}

void applyUpdate(double rate, const StepSlice& slice, const float* update) {
  changePieces(slice, [&](float* w, size_t at, size_t count) {
    applyPiece(static_cast<float>(rate), count, w, update + at);
  });
}

}  // namespace weft::reduce
