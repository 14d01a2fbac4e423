// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "net/crypto.h"
#include "net/socket.h"
#include "net/stream.h"

namespace weft::control {

// Between the ranks of a host and the server of their control link, so that the server has one
// connection a host, and says once what it says to all of it. It decides nothing: what ranks say is
// passed on, in their order, what is equal in one message; and what the server says to them.
//
// Ranks need no relay that lives and moves. Once it is gone, or says nothing for a second to a rank
// that it should have heard, that rank goes to the server itself (ControlClient).
struct RelaySpec {
  PeerName leader;          // the rank in whose process it is
  std::size_t members = 0;  // ranks that come to it, the leader among them
  std::size_t ranks = 0;    // of the communicator
  std::vector<net::Socket> listeners;
  net::Key secret{};
  std::unique_ptr<net::Stream> server;  // which knows that this is a relay
  Deadline opening;                     // until when members come
};

// A thread of the leader's process, until all members have gone, the server has, or the process ends.
Status startControlRelay(RelaySpec spec);

}  // namespace weft::control
