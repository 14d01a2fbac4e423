// SPDX-License-Identifier: Apache-2.0
// Which pairs of ranks are measured at the same time.
#pragma once

#include <span>
#include <vector>

namespace weft::health {

struct Pair {
  int a = 0, b = 0;  // ranks, a < b
};
using Round = std::vector<Pair>;

// Every pair of ranks once, in rounds of pairs that share no rank: n/2 pairs at a time where that
// is possible. A round is either inside hosts or between them, and in a round between hosts each
// host talks to one other, with as many pairs in every round, so that all rounds load the links of
// equally large hosts alike. `hostOf`: the number of the host of each rank, from 0.
std::vector<Round> pairRounds(std::span<const int> hostOf);

}  // namespace weft::health
