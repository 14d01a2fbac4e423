// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/control_state.h"
#include "net/stream.h"

namespace weft::control {

// A connection that nothing may be sent over for hours: the kernel asks the other one's kernel each
// second and gives it up after three without an answer. It answers for a stopped process, too. Nothing
// of that within a host: a machine that was too busy for three seconds took itself for cut off.
void watchClosely(const net::Socket& socket);

// Has nothing come from the other kernel for longer than from whoever is well? Never within a host, where
// nobody asks.
bool isSilent(const net::Socket& socket);

// How the connection of a stream ended, which has just said so.
ControlState::Loss lossOf(const net::Stream& stream);

}  // namespace weft::control
