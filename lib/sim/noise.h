// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <initializer_list>
#include <numbers>

#include "base/hash.h"
#include "sim/job.h"

namespace weft::sim {

// The factor of a time, which follows from the seed and from which one it is.
inline double noiseOf(const Jitter& jitter, std::initializer_list<std::uint64_t> which) {
  if (jitter.sigma <= 0) return 1;
  Hash hash;
  hash.add(jitter.seed);
  for (const std::uint64_t word : which) hash.add(word);
  const std::uint64_t one = hash.value(), two = hash.add(std::uint64_t{1}).value();
  const double u = (static_cast<double>(one >> 11) + 0.5) * 0x1p-53;
  const double v = (static_cast<double>(two >> 11) + 0.5) * 0x1p-53;
  const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  return std::exp(jitter.sigma * normal);
}

}  // namespace weft::sim
