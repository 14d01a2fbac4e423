// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "perf/weft-perf/reporter.h"
#include "perf/weft-perf/team.h"
#include "tools/test/options.h"

namespace weft::test {

// Runs all operations as one rank of the team; rank 0 makes the reporter. Returns the exit code,
// which is the same on all ranks. Throws weft::Error.
int runRank(const TestOptions& options, perf::Team& team,
            std::unique_ptr<perf::Reporter>& reporter);

}  // namespace weft::test
