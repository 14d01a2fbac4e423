// SPDX-License-Identifier: Apache-2.0
// Which ranks communicate with each other, as nccom-test is told: JSON, in a file or as it is.
#pragma once

#include <string>
#include <vector>

#include "perf/weft-perf/collective.h"

namespace weft::test {

using Groups = std::vector<std::vector<int>>;

// {"replica_groups": [[0, 1], [2, 3]]}, the list alone, or either with one more pair of brackets.
// Groups are of one size and hold rank 0; a rank in none of them is idle. Throws
// std::invalid_argument.
Groups parseGroups(const std::string& fileOrText, int ranks);

// Groups of `size` ranks that are as far apart as can be: 0, n / size, 2 n / size, ...
Groups spreadGroups(int size, int ranks);

// {"src_target_pairs": [[0, 1], [1, 0]]}, likewise. A rank sends once and receives once at most.
std::vector<perf::Pair> parsePairs(const std::string& fileOrText, int ranks);

// The group of a rank and its place there. Each idle rank is alone in a group.
struct Place {
  int color;
  int key;
};
Place placeOf(int rank, const Groups& groups);

}  // namespace weft::test
