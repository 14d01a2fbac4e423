// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "bootstrap/crypto.h"
#include "bootstrap/meeting.h"
#include "bootstrap/socket.h"

namespace weft {

struct RootOptions {
  Meeting::Timing timing;
  std::int64_t handshakeMs = 2000;  // from accept to the card
  std::int64_t lingerMs = 2000;     // a failed meeting tells late comers the verdict for this long
  std::int64_t unusedMs = std::int64_t{24} * 3600 * 1000;  // an id that nobody uses is given up
};

// Connections that have not proved to be ours; more than this and the oldest stranger has to go.
inline constexpr std::size_t kMaxStrangers = 64;

// What a root needs besides its listeners to tell at least the ranks of its own process what is
// wrong: a way to stop it, and both ends of a connection.
inline constexpr std::uint64_t kRootFds = 3;

// Serves one meeting at these listeners on a thread of its own, which ends when all members have
// left, when the failed meeting's verdict is told, or when nobody ever comes. All signals are
// blocked there. Whatever strangers send or do not send costs them their connection and the log one
// line a minute.
Status startRoot(std::vector<Socket> listeners, const Key& secret, const RootOptions& options = {});

}  // namespace weft
