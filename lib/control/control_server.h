// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "control/groups.h"
#include "net/crypto.h"
#include "net/socket.h"
#include "watch/liveness.h"

namespace weft::control {

// Starts the server of a control link, a thread of rank 0's process: takes one connection of each
// rank until the deadline and then serves them, until all have left or the process ends. And for the groups that rank 0 adds
// to `newGroups` meanwhile.
Status startControlServer(std::vector<net::Socket> listeners, const net::Key& secret,
                          std::vector<PeerName> names, Deadline deadline,
                          std::shared_ptr<NewGroups> newGroups = {});

}  // namespace weft::control
