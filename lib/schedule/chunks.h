// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

namespace weft {

// How a vector is cut into logical chunks: ceil-uniform. Chunk i is [min(i*stride, count),
// min((i+1)*stride, count)), so all chunks but the last non-empty one have the same length, runs of
// chunks are contiguous, and any count works with any number of chunks: the last chunks may be
// short or empty. Lengths and offsets are in elements.
struct Chunks {
  std::size_t count = 0;
  std::size_t chunks = 1;  // > 0
  std::size_t stride = 0;

  // `align` (in elements, > 0) rounds the stride up, so that chunks start on cache lines.
  static constexpr Chunks of(std::size_t count, std::size_t chunks, std::size_t align = 1) {
    const std::size_t even = count / chunks + (count % chunks != 0);
    return {count, chunks, (even + align - 1) / align * align};
  }

  constexpr std::size_t offset(std::size_t i) const { return std::min(i * stride, count); }
  constexpr std::size_t length(std::size_t i) const { return offset(i + 1) - offset(i); }
  // Elements in the run of `n` chunks from `i` on.
  constexpr std::size_t length(std::size_t i, std::size_t n) const {
    return offset(i + n) - offset(i);
  }
};

}  // namespace weft
