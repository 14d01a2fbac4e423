// SPDX-License-Identifier: Apache-2.0
// Chance as a pure function of numbers, so that every rank can compute every sample.
#pragma once

#include <cstdint>

namespace weft::train {

// Scatters a number over 64 bits.
uint64_t mix(uint64_t x);

// Where a permutation of [0, n), chosen by `key`, puts `index`.
uint64_t permute(uint64_t index, uint64_t n, uint64_t key);

// A sequence of numbers that follows from its seed.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() { return mix(state_++); }
  // In [0, n), for n far below 2^64.
  uint64_t below(uint64_t n) { return next() % n; }

 private:
  uint64_t state_;
};

}  // namespace weft::train
