// SPDX-License-Identifier: Apache-2.0
// The measurements of a run as a picture.
#pragma once

#include <iosfwd>
#include <vector>

#include "summary.h"

namespace weft::peers {

// SVG, legible on light and dark pages. A column for each number of ranks, a row for each
// collective and mode; in a panel, size against the ratio to the floor (paired by round), both
// logarithmic: a line for each form of weft and for each library, in its best configuration at each
// size.
void writeChart(std::ostream& out, const std::vector<Measurement>& measurements);

}  // namespace weft::peers
