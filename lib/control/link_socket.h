// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "control/control_state.h"
#include "net/stream.h"

namespace weft::control {

// A connection that nothing may be sent over for hours: the kernel asks the other one's kernel each
// second and gives it up after three without an answer. It answers for a stopped process, too. Nothing
// of that within a host: a machine that was too busy for three seconds took itself for cut off.
void watchClosely(const net::Socket& socket);

// Since when nothing has come from the other kernel; of whoever is well hardly ever more than the usual.
std::chrono::milliseconds silenceOf(const net::Socket& socket);
inline constexpr std::chrono::milliseconds kUsualSilence{1250};

// How the connection of a stream ended, which has just said so.
ControlState::Loss lossOf(const net::Stream& stream);

}  // namespace weft::control
