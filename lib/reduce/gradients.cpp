// SPDX-License-Identifier: Apache-2.0
#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/gradients.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "reduce/floats-inl.h"
#include "reduce/grid.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

// Vectors in flight: enough to hide the latency of an addition.
constexpr size_t kInFlight = 4;

struct FoldOfGradients {
  float* dst;
  std::span<const Addend> addends;
  float scale;
  bool accumulate;

  template <size_t kCount, class D>
  HWY_INLINE void vectors(D d, size_t i) const {
    Vectors<D, kCount> sum;
    // -0, unlike 0, leaves every first addend as it is.
    for (auto& v : sum) v = hn::Set(d, -0.0f);
    for (const Addend& addend : addends) addAddend<D, kCount>(sum, d, addend, i);
    for (size_t k = 0; k < kCount; ++k) {
      float* to = dst + i + k * hn::MaxLanes(d);
      const auto scaled = hn::Mul(sum[k], hn::Set(d, scale));
      storeFloats(d, accumulate ? hn::Add(loadFloats(d, to), scaled) : scaled, to);
    }
  }
};

void fold(float* dst, std::span<const Addend> addends, float scale, bool accumulate, size_t from,
          size_t to) {
  const FoldOfGradients gradients{dst, addends, scale, accumulate};
  size_t i = from;
  for (; i + kInFlight * kFloats <= to; i += kInFlight * kFloats)
    gradients.vectors<kInFlight>(FloatTag(), i);
  for (; i + kFloats <= to; i += kFloats) gradients.vectors<1>(FloatTag(), i);
  for (; i < to; ++i) gradients.vectors<1>(OneFloat(), i);
}

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::reduce {
namespace {

void countNonFinite(const float* data, size_t n, uint64_t first, GradientStats& stats) {
  for (size_t i = 0; i < n; ++i) {
    if (std::isfinite(data[i])) continue;
    ++stats.nonFinite;
    stats.firstNonFinite = std::min(stats.firstNonFinite, first + i);
  }
}

void addStats(const float* data, size_t n, uint64_t first, GradientStats& stats) {
  const double squares = sumOfSquares(data, n, first);
  stats.squares.add(squares);
  if (!std::isfinite(squares)) countNonFinite(data, n, first, stats);
}

}  // namespace

HWY_EXPORT(fold);

void foldGradients(float* dst, std::span<const Addend> addends, float scale, bool accumulate,
                   size_t n, uint64_t first, GradientStats* stats) {
  const auto foldPiece = HWY_DYNAMIC_DISPATCH(fold);
  forGrid(first, n, [&](size_t at, size_t count) {
    foldPiece(dst, addends, scale, accumulate, at, at + count);
    if (stats != nullptr) addStats(dst + at, count, first + at, *stats);
  });
}

}  // namespace weft::reduce
#endif
