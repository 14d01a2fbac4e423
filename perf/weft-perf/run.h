// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "perf/weft-perf/options.h"
#include "perf/weft-perf/reporter.h"
#include "perf/weft-perf/team.h"

namespace weft::perf {

// Measures everything that the options ask for, as one rank of the team. `reporter` is null on all
// ranks but 0. Returns whether all data was right and fast enough, as this rank and rank 0 saw it.
// Throws weft::Error.
bool runRank(const Options& options, Team& team, Reporter* reporter);

}  // namespace weft::perf
