// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace weft::sim {

// The clock of a simulation, in picoseconds: what is symmetric happens at the very same time.
using Time = std::int64_t;

inline constexpr Time kNever = std::numeric_limits<Time>::max();

// The nearest one; of nothing below zero.
inline Time timeOf(double ns) { return static_cast<Time>(ns * 1e3 + 0.5); }
inline double nsOf(Time time) { return static_cast<double>(time) / 1e3; }

}  // namespace weft::sim
