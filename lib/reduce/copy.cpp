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

constexpr size_t kLine = 64, kTile = 8 << 10;

// Line by line: a half-written one may leave its buffer too early.
void streamTo(uint8_t* to, const uint8_t* from, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t head = std::min(bytes, (0 - reinterpret_cast<uintptr_t>(to)) % kLine);
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + kLine <= bytes; at += kLine)
    for (size_t b = 0; b < kLine; b += hn::Lanes(d))
      hn::Stream(hn::LoadU(d, from + at + b), d, to + at + b);
  std::memcpy(to + at, from + at, bytes - at);
}

// To one target after the other while a tile is in the first-level cache. Tiles end where lines of the
// target do: a half-written line would be fetched first, and hold up all stores behind it.
void streamTiles(void* const* dst, size_t targets, const void* src, size_t bytes) {
  const auto* from = static_cast<const uint8_t*>(src);
  for (size_t at = 0; at < bytes; at += kTile) {
    for (size_t t = 0; t < targets; ++t) {
      auto* to = static_cast<uint8_t*>(dst[t]);
      const size_t head = (0 - reinterpret_cast<uintptr_t>(to)) % kLine;
      const size_t begin = at == 0 ? 0 : std::min(bytes, at + head);
      const size_t end = std::min(bytes, at + kTile + head);
      if (to != from) streamTo(to + begin, from + begin, end - begin);
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
