// SPDX-License-Identifier: Apache-2.0
// Whether each rank gets the core that it needs: the ranks of a host compute one after the other,
// while the rest sleep, and compare processor time with the clock on the wall.
#pragma once

#include <string>
#include <vector>

#include "tools/health/crew.h"

namespace weft::health {

struct CoreShare {
  double share = 1;   // of one core, the median of the turns
  double best = 1;    // of the turns
  std::string cores;  // those that the rank may use, as "0-3,8"
};

// Collective. Turns of `seconds` for each rank of a host, `turns` times.
std::vector<CoreShare> measureShares(Crew& crew, double seconds, int turns);

// Ranks that get far less than the others of their host, though these show that it could give
// more. Pure. The best turn counts, as other work on the host only lowers it. Ranks that may use
// the same cores are judged together, by the best of them: which of them the scheduler neglects is
// chance.
std::vector<int> starved(const std::vector<Member>& members, const std::vector<CoreShare>& shares);

}  // namespace weft::health
