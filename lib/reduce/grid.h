// SPDX-License-Identifier: Apache-2.0
// Inside lib/reduce: arrays cut at the borders of the grid of optimizer.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reduce/optimizer.h"

namespace weft::reduce {

// Calls body(at, count) for the piece of each grid block of n elements from logical index `first`.
template <class Body>
void forGrid(uint64_t first, size_t n, const Body& body) {
  for (size_t at = 0; at < n;) {
    const size_t count = std::min<size_t>(n - at, kGrid - (first + at) % kGrid);
    body(at, count);
    at += count;
  }
}

// The sum of squares of a piece of one grid block: inf or NaN just if an element is.
double sumOfSquares(const float* data, size_t n, uint64_t first);

}  // namespace weft::reduce
