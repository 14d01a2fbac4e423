// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "perf/weft-perf/bench.h"
#include "perf/weft-perf/report.h"

namespace weft::test {

// What all wrong data has in common, which is then to blame: the link between two ranks, the rank
// that it came from or the one that received it. "rank 2 on node7, which received all of it", or
// nothing. `ranks` are all, in rank order.
std::string culpritOf(std::span<const perf::WrongData> wrong,
                      std::span<const perf::RankInfo> ranks);

}  // namespace weft::test
