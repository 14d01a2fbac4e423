// SPDX-License-Identifier: Apache-2.0
// The links as an N x N picture: a row for each sender, a column for each receiver, the darker the
// slower against what is usual for links of its kind.
#pragma once

#include <string>

#include "tools/health/evidence.h"

namespace weft::health {

// For a terminal, up to 64 ranks (empty with more, and with one rank). A sign for each link: "." is
// as usual, "o" down to half, "O" down to a quarter, "#" less, "!" wrong data.
std::string heatMapText(const Evidence& evidence);

// Bandwidth and latency side by side; every cell says its figures when pointed at.
std::string heatMapSvg(const Evidence& evidence);

}  // namespace weft::health
