// SPDX-License-Identifier: Apache-2.0
// Who comes late: all ranks do the same little work and then meet, many times. Whoever comes last
// waits least, so the ranks' waits tell who it was, without clocks that agree.
#pragma once

#include <vector>

#include "tools/health/crew.h"

namespace weft::health {

struct Skew {
  std::vector<double> lateMicroseconds;  // by rank: behind the first, median
  std::vector<double> lastShare;         // by rank: in what part of the meetings it came last
};
// Collective; takes about so long.
Skew measureSkew(Crew& crew, double seconds);

}  // namespace weft::health
