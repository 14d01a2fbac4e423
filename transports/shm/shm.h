// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/status.h"
#include "transports/transport.h"

namespace weft::shm {

using namespace transport;

// Ranks are processes of this host, or threads in them: their windows lie in one memfd, which the
// first makes and all map.
Status makeShm(const TransportSetup& setup, std::unique_ptr<Transport>* out);

// How many descriptors a rank has for so many of this host, each a process: while they meet, the
// first rank's (a socket and three of each), and for as long as the communicator lives.
constexpr std::size_t mostDescriptors(std::size_t ranks) { return 4 * ranks + 8; }
constexpr std::size_t keptDescriptors(std::size_t ranks) { return 3 * (ranks - 1); }

}  // namespace weft::shm
