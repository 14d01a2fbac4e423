// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tests/simulation/outcome.h"

namespace weft::simulation {

// Two to four ranks make a few calls over a simulated network with the real engine and watch.
Outcome simulateEngine(std::uint64_t seed);

}  // namespace weft::simulation
