// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "net/crypto.h"
#include "net/socket.h"
#include "watch/liveness.h"

namespace weft::control {

// Starts the server of a control link, a thread of rank 0's process: takes one connection of each
// rank until the deadline and then serves them, until all have left or the process ends.
Status startControlServer(std::vector<net::Socket> listeners, const net::Key& secret,
                          std::vector<PeerName> names, Deadline deadline);

}  // namespace weft::control
