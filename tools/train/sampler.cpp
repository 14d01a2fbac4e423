// SPDX-License-Identifier: Apache-2.0
#include "tools/train/sampler.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/train/failure.h"
#include "tools/train/random.h"

namespace weft::train {

Sampler::Sampler(std::span<const uint8_t> text, size_t length, size_t samplesPerStep, uint64_t seed)
    : text_(text), length_(length), samplesPerStep_(samplesPerStep), seed_(seed) {
  if (text.size() < length + 1) {
    throw Failure(
        Exit::kData,
        fmt::format(
            "the text, or its share of --split, has {} bytes, but --seq {} needs at least {}",
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
