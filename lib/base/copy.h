// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::inline base {

inline constexpr std::size_t kShortCopy = 256;  // one piece, whatever the buffers are

// In what pieces glibc copies fastest (docs/performance.md). On AMD it moves what is larger than a
// core's second-level cache at half the rate of what is not. And from some KiB on it takes `rep movsb`,
// which AMD's processors make slowly where the target lies a few bytes above the source within their
// pages, as buffers of malloc do. Of 256 bytes it loads all before it stores any.
inline std::size_t pieceOfCopy(const void* to, const void* from) {
  constexpr std::size_t kPage = 4 << 10, kClose = 64, kLong = 128 << 10;
  const std::size_t above =
      (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % kPage;
  return above != 0 && above < kClose ? kShortCopy : kLong;
}

inline void copyBytes(void* to, const void* from, std::size_t bytes) {
  if (to == from || bytes == 0) return;
  if (bytes <= kShortCopy) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t piece = pieceOfCopy(to, from);
  for (std::size_t at = 0; at < bytes; at += piece)
    std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at,
                std::min(piece, bytes - at));
}

}  // namespace weft::inline base
