// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bootstrap/stream.h"
#include "control/switchboard.h"

namespace weft {

// A connection that nothing may be sent over for hours: the kernel asks the other one's kernel each
// second and gives it up after three without an answer. It answers for a stopped process, too.
void watchClosely(const Socket& socket);

// Why a stream has just said (fill, flush) that its connection is gone; `error` is errno then, 0
// for the end of the stream.
Switchboard::Loss lossOf(const Stream& stream, int error);

}  // namespace weft
