// SPDX-License-Identifier: Apache-2.0
#include "reduce/rounding.h"

#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/rounding.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "reduce/grid.h"
#include "reduce/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

// n elements from the place `offset` of a block on.
template <class To, class Mode>
void castPart(uint16_t* dst, const float* src, size_t n, size_t offset, Mode& mode) {
  alignas(64) float in[kBlock] = {};
  alignas(64) uint16_t out[kBlock];
  std::memcpy(in + offset, src, n * sizeof *in);
  To::store(mode.template rounded<To>(in), out);
  std::memcpy(dst, out + offset, n * sizeof *out);
}

// `first`: where src[0] lies in the grid block.
template <class To, class Mode>
void castTo(uint16_t* dst, const float* src, size_t n, size_t first, Mode mode) {
  const size_t offset = first % kBlock;
  size_t at = 0;
  if (offset != 0) {
    at = std::min(n, kBlock - offset);
    castPart<To>(dst, src, at, offset, mode);
  }
  for (; at + kBlock <= n; at += kBlock) To::store(mode.template rounded<To>(src + at), dst + at);
  if (at < n) castPart<To>(dst + at, src + at, n - at, 0, mode);
}

template <class To>
void castAll(void* dst, const float* src, size_t n, const Rounding& rounding, uint64_t first) {
  auto* halves = static_cast<uint16_t*>(dst);
  if (rounding.mode == RoundingMode::Nearest) return castTo<To>(halves, src, n, 0, Nearest());
  const uint64_t key = keyOf(rounding);
  forGrid(first, n, [=](size_t at, size_t count) {
    const size_t place = (first + at) % kGrid;
    const Stochastic mode{{key, (first + at) / kGrid, place / kBlock * (kBlock / 2)}};
    castTo<To>(halves + at, src + at, count, place, mode);
  });
}

void cast(DType to, void* dst, const float* src, size_t n, const Rounding& rounding,
          uint64_t first) {
  if (to == DType::BF16) castAll<ToBF16>(dst, src, n, rounding, first);
  if (to == DType::F16) castAll<ToF16>(dst, src, n, rounding, first);
}

template <class From>
struct Widen {
  float* dst;
  const void* src;

  template <class D>
  HWY_INLINE void operator()(D d, size_t i) const {
    storeFloats(d, From::load(d, src, i), dst + i);
  }
};

void widenFrom(DType from, float* dst, const void* src, size_t n) {
  if (from == DType::F32) forElements(n, Widen<FromF32>{dst, src});
  if (from == DType::F16) forElements(n, Widen<FromF16>{dst, src});
  if (from == DType::BF16) forElements(n, Widen<FromBF16>{dst, src});
}

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::reduce {

HWY_EXPORT(cast);
HWY_EXPORT(widenFrom);

void castFloats(DType to, void* dst, const float* src, size_t n, const Rounding& rounding,
                uint64_t first) {
  if (n == 0) return;
  if (to == DType::F32) {
    std::memcpy(dst, src, n * sizeof *src);
  } else {
    HWY_DYNAMIC_DISPATCH(cast)(to, dst, src, n, rounding, first);
  }
}

void widen(DType from, float* dst, const void* src, size_t n) {
  HWY_DYNAMIC_DISPATCH(widenFrom)(from, dst, src, n);
}

}  // namespace weft::reduce
#endif
