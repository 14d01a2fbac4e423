// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tests/simulation/outcome.h"

namespace weft::simulation {

// Two to four ranks of different hosts: the real WireTransport over simulated cards, and the real
// control link, server and clients, over simulated TCP.
Outcome simulateRemote(std::uint64_t seed);

}  // namespace weft::simulation
