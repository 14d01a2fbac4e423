// SPDX-License-Identifier: Apache-2.0
#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/copy.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "reduce/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kTile = 8 << 10;

void streamTo(uint8_t* to, const uint8_t* from, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t step = hn::Lanes(d);
  const size_t head = std::min(bytes, (0 - reinterpret_cast<uintptr_t>(to)) % step);
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + 4 * step <= bytes; at += 4 * step) {
    const auto v0 = hn::LoadU(d, from + at);
    const auto v1 = hn::LoadU(d, from + at + step);
    const auto v2 = hn::LoadU(d, from + at + 2 * step);
    const auto v3 = hn::LoadU(d, from + at + 3 * step);
    hn::Stream(v0, d, to + at);
    hn::Stream(v1, d, to + at + step);
    hn::Stream(v2, d, to + at + 2 * step);
    hn::Stream(v3, d, to + at + 3 * step);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

// To one target after the other while a tile is in the first-level cache.
void streamTiles(void* const* dst, size_t targets, const void* src, size_t bytes) {
  const auto* from = static_cast<const uint8_t*>(src);
  for (size_t at = 0; at < bytes; at += kTile) {
    for (size_t t = 0; t < targets; ++t) {
      auto* to = static_cast<uint8_t*>(dst[t]);
      if (to != from) streamTo(to + at, from + at, std::min(kTile, bytes - at));
    }
  }
  hwy::FlushStream();
}

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::reduce {

HWY_EXPORT(streamTiles);

void copyStream(void* const* dst, size_t targets, const void* src, size_t bytes) {
  if (bytes != 0) HWY_DYNAMIC_DISPATCH(streamTiles)(dst, targets, src, bytes);
}

}  // namespace weft::reduce
#endif
