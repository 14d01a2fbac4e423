// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace weft::tune {

// Bytes that a core touches in a call for which rates are measured: within every second-level
// cache, about its size, and on to what few last-level caches hold for two cores.
inline constexpr std::array<double, 5> kFootprints = {128 << 10, 512 << 10, 2 << 20, 8 << 20,
                                                      24 << 20};

// A rate in bytes a nanosecond (GB/s) by footprint.
struct Curve {
  std::array<double, kFootprints.size()> at{};

  // Nanoseconds a byte: between two footprints on the line through both, on a logarithmic scale.
  double nsPerByte(double footprint) const {
    if (footprint <= kFootprints.front()) return 1 / at.front();
    if (footprint >= kFootprints.back()) return 1 / at.back();
    const auto above = std::ranges::upper_bound(kFootprints, footprint);
    const auto i = static_cast<std::size_t>(above - kFootprints.begin());
    const double part =
        std::log(footprint / kFootprints[i - 1]) / std::log(kFootprints[i] / kFootprints[i - 1]);
    return (1 - part) / at[i - 1] + part / at[i];
  }
  double near() const { return at.front(); }
  friend bool operator==(const Curve&, const Curve&) = default;
};

// The same rate everywhere.
constexpr Curve flat(double rate) {
  Curve curve;
  curve.at.fill(rate);
  return curve;
}

}  // namespace weft::tune
