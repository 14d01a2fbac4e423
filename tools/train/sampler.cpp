// SPDX-License-Identifier: Apache-2.0
#include "tools/train/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A permutation of [0, n) chosen by `key`: a four-round Feistel network over the next even number
// of bits, walked until it lands inside [0, n) again (Black and Rogaway, CT-RSA 2002).
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

}  // namespace

Sampler::Sampler(std::span<const uint8_t> text, size_t length, size_t samplesPerStep, uint64_t seed)
    : text_(text), length_(length), samplesPerStep_(samplesPerStep), seed_(seed) {
  if (text.size() < length + 1) {
    throw Failure(Exit::kData,
                  fmt::format("the training text has {} bytes, but --seq {} needs at least {}",
                              text.size(), length, length + 1));
  }
  windows_ = std::max<size_t>((text.size() - length) / length, 1);
  shifts_ = std::min(length, text.size() - windows_ * length);
}

std::span<const uint8_t> Sampler::sample(uint64_t step, uint64_t g) const {
  const uint64_t index = step * samplesPerStep_ + g;
  const uint64_t key = mix(seed_ ^ mix(index / windows_));
  const uint64_t window = permute(index % windows_, windows_, key);
  return text_.subspan(mix(key) % shifts_ + window * length_, length_ + 1);
}

}  // namespace weft::train
