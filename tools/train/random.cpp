// SPDX-License-Identifier: Apache-2.0
#include "tools/train/random.h"

#include <algorithm>
#include <bit>

namespace weft::train {

// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A four-round Feistel network over the next even number of bits, walked until it lands inside
// [0, n) again (Black and Rogaway, CT-RSA 2002).
uint64_t permute(uint64_t index, uint64_t n, uint64_t key) {
  const auto half = std::max<uint64_t>((std::bit_width(n - 1) + 1) / 2, 1);
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t next = left ^ (mix(key ^ mix(right ^ (round << 60))) & mask);
      left = right;
      right = next;
    }
    index = (left << half) | right;
  } while (index >= n);
  return index;
}

}  // namespace weft::train
