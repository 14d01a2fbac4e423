// SPDX-License-Identifier: Apache-2.0
#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/fused.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "reduce/adam-inl.h"
#include "reduce/fused.h"
#include "reduce/rounding-inl.h"
#include "reduce/squares-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

static_assert(Squares::kSums == kBlock && kGrid % kBlock == 0);

// The sums of a row of kBlock elements.
HWY_INLINE void sumRow(std::span<const Addend> addends, size_t from, float* row) {
  Vectors<FloatTag, kVectors> sum;
  for (auto& v : sum) v = hn::Set(FloatTag(), -0.0f);  // leaves the first addend as it is
  for (const Addend& addend : addends) {
    const size_t bytes = addend.type == DType::F32 ? 4 : 2;
    const auto* const line = static_cast<const std::byte*>(addend.data) + from * bytes;
    hwy::Prefetch(line + kAhead * sizeof(float));
    if (addend.type == DType::F32) hwy::Prefetch(line + kAhead * sizeof(float) + 64);
    addAddend<FloatTag, kVectors>(sum, FloatTag(), addend, from);
  }
  for (size_t k = 0; k < kVectors; ++k) storeFloats(FloatTag(), sum[k], row + k * kFloats);
}

// Past the caches: nobody reads it soon.
template <class T>
HWY_INLINE void streamRow(const T* row, T* to) {
  const hn::CappedTag<T, 64 / sizeof(T)> d;
  for (size_t i = 0; i < kBlock; i += hn::Lanes(d)) hn::Stream(hn::Load(d, row + i), d, to + i);
}

double foldBlock(std::span<const Addend> addends, size_t at, float* to) {
  Squares squares;
  for (size_t i = 0; i < kGrid; i += kBlock) {
    alignas(64) float sums[kBlock];
    sumRow(addends, at + i, sums);
    squares.add(sums);
    streamRow(sums, to + i);
  }
  return squares.total();
}

template <class To, class Mode>
double stepBlock(const FusedBlock& b, Mode mode) {
  Squares squares;
  for (size_t i = 0; i < kGrid; i += kBlock) {
    alignas(64) float sums[kBlock];
    alignas(64) uint16_t rounded[kBlock];
    sumRow(b.addends, b.at + i, sums);
    squares.add(sums);
    const AdamWStep step{{b.factors, sums, b.m + i, b.v + i}, b.keep, b.w + i};
    for (size_t k = 0; k < kBlock; k += kFloats) step(FloatTag(), k);
    To::store(mode.template rounded<To>(b.w + i), rounded);
    for (void* to : b.out) streamRow(rounded, static_cast<uint16_t*>(to) + b.at + i);
  }
  return squares.total();
}

template <class To>
double stepRounding(const FusedBlock& b) {
  if (b.rounding.mode == RoundingMode::Nearest) return stepBlock<To>(b, Nearest());
  return stepBlock<To>(b, Stochastic{{keyOf(b.rounding), b.first / kGrid, 0}});
}

double fusedStep(const FusedBlock& b) {
  return b.outType == DType::BF16 ? stepRounding<ToBF16>(b) : stepRounding<ToF16>(b);
}

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::reduce {

HWY_EXPORT(fusedStep);
HWY_EXPORT(foldBlock);

double stepFusedBlock(const FusedBlock& block) { return HWY_DYNAMIC_DISPATCH(fusedStep)(block); }

double foldFusedBlock(std::span<const Addend> addends, size_t at, float* sums) {
  return HWY_DYNAMIC_DISPATCH(foldBlock)(addends, at, sums);
}

}  // namespace weft::reduce
#endif
