// SPDX-License-Identifier: Apache-2.0
// All-reduce, all-gather and reduce-scatter, at several sizes, over and over with ranks that come
// late at random; every element is checked.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/health/crew.h"

namespace weft::health {

struct CollectiveRow {
  std::string name;  // nccl-tests': "all_reduce"
  std::size_t bytes = 0;
  double microseconds = 0;  // median over the timed repeats, of the slowest rank
  double busbw = 0;         // GB/s, as nccl-tests counts it
  double wrong = 0;         // elements, over all ranks and repeats
  int repeats = 0;
};

struct CollectiveReport {
  std::vector<CollectiveRow> rows;
  std::vector<double> wrongAt;               // elements by the rank that saw them
  std::set<std::pair<int, int>> wrongLinks;  // blocks of an all-gather: from, at
  std::vector<double> lateMicroseconds;      // by rank: how long the others waited, median
  std::vector<double> lastShare;             // by rank: in what part of the calls it was the last
};

struct CollectiveOptions {
  std::uint64_t seed = 1;
  double seconds = 10;
  std::size_t largest = 4 << 20;  // bytes
};

// Collective. `progress` is told the done part, 0 to 1.
CollectiveReport testCollectives(Crew& crew, const CollectiveOptions& options,
                                 const std::function<void(double)>& progress);

}  // namespace weft::health
