// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::testing {

using Bytes = std::vector<std::uint8_t>;

// What rank `from` sends as its k-th message to rank `to`.
inline void fill(int from, int to, std::size_t k, std::uint8_t* data, std::size_t bytes) {
  std::uint32_t x =
      static_cast<std::uint32_t>(from * 1000 + to) * 7919 + static_cast<std::uint32_t>(k);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::uint8_t>((x = x * 1664525 + 1013904223) >> 24);
}

inline Bytes message(int from, int to, std::size_t k, std::size_t bytes) {
  Bytes data(bytes);
  fill(from, to, k, data.data(), bytes);
  return data;
}

}  // namespace weft::testing
