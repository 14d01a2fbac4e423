// SPDX-License-Identifier: Apache-2.0
// The sum of squares of a grid block.
#if defined(WEFT_REDUCE_SQUARES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_REDUCE_SQUARES_INL_H
#undef WEFT_REDUCE_SQUARES_INL_H
#else
#define WEFT_REDUCE_SQUARES_INL_H
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "reduce/floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

// 32 sums, each of the squares of every 32nd element of a grid block, in their order.
// The square of a float is exact in double, so a fused multiply-add gives the same bits.
class Squares {
 public:
  Squares() {
    for (auto& sum : sums_) sum = hn::Zero(Doubles());
  }

  HWY_INLINE void add(const float* row) {
    for (size_t i = 0; i < kVectors; ++i) {
      const auto floats = loadFloats(hn::Rebind<float, Doubles>(), row + i * kLanes);
      const auto x = hn::PromoteTo(Doubles(), floats);
      sums_[i] = hn::MulAdd(x, x, sums_[i]);
    }
  }

  // n elements from the place `lane` on.
  void addPart(const float* from, size_t n, size_t lane) {
    alignas(64) float row[kSums] = {};
    std::memcpy(row + lane, from, n * sizeof *from);
    add(row);
  }

  double total() const {
    alignas(64) double sum[kSums];
    for (size_t i = 0; i < kVectors; ++i) hn::Store(sums_[i], Doubles(), sum + i * kLanes);
    for (size_t half = kSums / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) sum[i] += sum[i + half];
    return std::isnan(sum[0]) ? std::numeric_limits<double>::quiet_NaN() : sum[0];
  }

  static constexpr size_t kSums = 32;

 private:
  using Doubles = hn::CappedTag<double, 8>;
  static constexpr size_t kLanes = hn::MaxLanes(Doubles());
  static constexpr size_t kVectors = kSums / kLanes;
  hn::Vec<Doubles> sums_[kVectors];
};

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
