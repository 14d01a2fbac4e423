// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "perf/weft-perf/bench.h"
#include "perf/weft-perf/options.h"
#include "perf/weft-perf/reporter.h"
#include "perf/weft-perf/team.h"

namespace weft::perf {

struct RunResult {
  std::vector<WrongData> wrong;  // of each rank, in rank order
  bool fastEnough = true;        // as this rank saw it

  bool right() const {
    return std::ranges::all_of(wrong, [](const WrongData& data) { return data.elements == 0; });
  }
  bool passed() const { return right() && fastEnough; }
};

// Measures everything that the options ask for, as one rank of the team. `reporter` is null on all
// ranks but 0. Throws weft::Error.
RunResult runRank(const Options& options, Team& team, Reporter* reporter);

}  // namespace weft::perf
