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
// first rank's (a socket and three of each), and for as long as any communicator with these processes
// lives: of each its pidfd, which tells that it has ended whatever becomes of its pid; its stat, which
// tells that sooner, and also where its pid is not visible; and its heap until that is mapped. Further
// communicators with the same processes have no more.
constexpr std::size_t mostDescriptors(std::size_t ranks) { return 4 * ranks + 8; }
constexpr std::size_t keptDescriptors(std::size_t ranks) { return 3 * (ranks - 1); }
constexpr std::size_t furtherDescriptors(std::size_t) { return 0; }

}  // namespace weft::shm
