// SPDX-License-Identifier: Apache-2.0
// weft's reductions against a plain scalar reference, on one core after another.
#pragma once

#include <string>
#include <vector>

#include "tools/checks/host.h"

namespace weft::checks {

// All types and operations in all-reduces among threads that are pinned to one core, for each of
// `cores` in random order, as many as the time allows (at least one). `transport` is
// weftConfig_t's.
void checkKernels(std::vector<int> cores, double seconds, HostReport& report,
                  const char* transport = "local");

}  // namespace weft::checks
