// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bootstrap/rendezvous.h"
#include "net/crypto.h"
#include "net/socket.h"

namespace weft::bootstrap {

struct RootOptions {
  Rendezvous::Timing timing;
  std::int64_t handshakeMs = 2000;  // from accept to the proof
  std::int64_t lingerMs = 2000;     // a failed rendezvous tells late comers its error for this long
  std::int64_t unusedMs = std::int64_t{24} * 3600 * 1000;  // an id that nobody uses is given up
};

// Connections that have not proved to be ours; more than this and the oldest has to go.
inline constexpr std::size_t kMaxUnauthenticated = 64;
// Those of them, besides, that have named our secret and have still to prove that they hold it.
inline constexpr std::size_t kMaxNamed = 1024;

// What a root needs besides its listeners to tell at least the ranks of its own process what is
// wrong: a way to stop it, two to wait with, and both ends of a connection.
inline constexpr std::uint64_t kRootFds = 5;

// Serves one rendezvous at these listeners on a thread of its own, which ends when all members have
// left, when a failed rendezvous has told its error, or when nobody ever comes. All signals are
// blocked there. Whatever an unauthenticated peer sends or does not send costs it its connection
// and the log one line a minute.
Status startRoot(std::vector<net::Socket> listeners, const net::Key& secret,
                 const RootOptions& options = {});

// What its ranks say of a root that hung up. `name`: "host b, pid 4711".
Status rootIsLost(std::string_view name, std::string_view how);

}  // namespace weft::bootstrap
