// SPDX-License-Identifier: Apache-2.0
// A run on one screen: how the sizes of each collective did together, and where it was worst.
#pragma once

#include <iosfwd>
#include <vector>

#include "summary.h"

namespace weft::peers {

// From here on own buffers are compared with the floor: below, its barrier decides.
inline constexpr std::uint64_t kFloorFrom = 16 << 10;

// Of one ratio over the sizes at which it was measured.
struct Spread {
  std::size_t points = 0;
  std::size_t above = 0;  // of them, above the limit that was asked for
  double mean = 0;        // geometric
  double worst = 0;
  std::uint64_t worstBytes = 0;
};

// `which` of each size's summary, from `least` bytes on.
Spread spreadOf(const Series& series, std::optional<Ratio> Summary::*which, double limit,
                std::uint64_t least = 0);

// A Markdown table with a line for each number of ranks, collective and mode.
void writeOverview(std::ostream& out, const std::vector<Measurement>& measurements);

}  // namespace weft::peers
