// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/health/evidence.h"
#include "tools/health/options.h"
#include "tools/health/progress.h"

namespace weft::health {

// Runs all tests as one rank of the job. Collective; what was found is the same on all ranks.
// `evidence` is filled as far as the tests come, also when an error is thrown: weft::Error of a
// peer that was lost.
void examine(const Options& options, Crew& crew, Progress& progress, Evidence* evidence);

}  // namespace weft::health
