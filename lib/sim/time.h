// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace weft::sim {

// The clock of a simulation, in picoseconds: what is symmetric happens at the very same time.
using Time = std::int64_t;

inline constexpr Time kNever = std::numeric_limits<Time>::max();

inline Time timeOf(double ns) { return std::llround(ns * 1e3); }
inline double nsOf(Time time) { return static_cast<double>(time) / 1e3; }

}  // namespace weft::sim
