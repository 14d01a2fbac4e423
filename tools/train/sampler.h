// SPDX-License-Identifier: Apache-2.0
// Which piece of the text is which sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::train {

// The text is cut into windows of `length` tokens, and an epoch visits each window once in a
// shuffled order; each epoch has its own order and its own shift of the cuts. The window of sample
// g of step t is a pure function of (seed, t, g), so it does not matter which rank computes it: N
// ranks with batch B see exactly what one rank with batch N * B sees.
class Sampler {
 public:
  // `samplesPerStep` is the global batch. A sample has length + 1 bytes: inputs, and targets one
  // further. Throws Failure if the text is shorter than one sample. Keeps a view of `text`.
  Sampler(std::span<const uint8_t> text, size_t length, size_t samplesPerStep, uint64_t seed);

  // Sample g, 0 <= g < samplesPerStep, of step t.
  std::span<const uint8_t> sample(uint64_t step, uint64_t g) const;

  size_t windows() const { return windows_; }  // samples in an epoch

 private:
  std::span<const uint8_t> text_;
  size_t length_;
  size_t samplesPerStep_;
  uint64_t seed_;
  size_t windows_;
  size_t shifts_;  // an epoch's shift is below this
};

}  // namespace weft::train
