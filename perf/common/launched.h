// SPDX-License-Identifier: Apache-2.0
// Whether this process is a rank that somebody has started, by the variables that
// weftCommInitFromEnv reads.
#pragma once

namespace weft::tools {

bool isStartedByLauncher();

// How many ranks that launcher has started, as it says; 1 without one, 0 where it does not say.
int launchedRanks();

}  // namespace weft::tools
