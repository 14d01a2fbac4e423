// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/deadline.h"
#include "transports/transport.h"

namespace weft::comm {

// What one rank has measured of its way to a peer. Plain bytes, for the others.
struct WayTimes {
  double latencyNs = 0;   // of a message of no bytes
  double bytesPerNs = 0;  // of half a MiB, one direction, answer included; 0: not measured
};

// Puts some bytes to every peer, one peer after the other, while another rank puts as many here: so
// each link is busy in one direction, and each rank with one of both. All ranks do it at once, before
// the first call; what was used of the windows is as before. By rank; a peer that does not answer
// by the deadline ends it.
std::vector<WayTimes> timeWays(transport::Transport& transport, std::uint32_t rank,
                               std::uint32_t ranks, Deadline deadline);

}  // namespace weft::comm
