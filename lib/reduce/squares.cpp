// SPDX-License-Identifier: Apache-2.0
#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/squares.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>

#include "reduce/grid.h"
#include "reduce/squares-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

double squaresOf(const float* data, size_t n, uint64_t first) {
  constexpr size_t kSums = Squares::kSums;
  Squares squares;
  const size_t lane = first % kSums;
  size_t at = 0;
  if (lane != 0) {
    at = std::min(n, kSums - lane);
    squares.addPart(data, at, lane);
  }
  for (; at + kSums <= n; at += kSums) squares.add(data + at);
  if (at < n) squares.addPart(data + at, n - at, 0);
  return squares.total();
}

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::reduce {

HWY_EXPORT(squaresOf);

double sumOfSquares(const float* data, size_t n, uint64_t first) {
  return HWY_DYNAMIC_DISPATCH(squaresOf)(data, n, first);
}

}  // namespace weft::reduce
#endif
