// SPDX-License-Identifier: Apache-2.0
#include "tools/health/pattern.h"

namespace weft::health {
namespace {

// The finalizer of SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Pattern::Pattern(std::uint64_t seed, int sender)
    : start_(mix(seed + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(sender + 1))),
      step_(mix(start_) | 1) {}

void Pattern::fill(std::uint64_t* words, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) words[i] = (*this)[i];
}

std::size_t Pattern::countWrong(const std::uint64_t* words, std::size_t count) const {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += words[i] != (*this)[i];
  return wrong;
}

}  // namespace weft::health
