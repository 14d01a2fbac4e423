// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

namespace weft::inline base {

// Copies in pieces: on AMD glibc moves what is larger than a core's second-level cache at half the
// rate of what is not (docs/performance.md).
inline void copyBytes(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kPiece = 128 << 10;
  auto* dst = static_cast<std::byte*>(to);
  const auto* src = static_cast<const std::byte*>(from);
  if (to == from || bytes == 0) return;
  for (; bytes > kPiece; bytes -= kPiece, dst += kPiece, src += kPiece)
    std::memcpy(dst, src, kPiece);
  std::memcpy(dst, src, bytes);
}

}  // namespace weft::inline base
