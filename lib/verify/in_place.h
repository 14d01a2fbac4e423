// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "verify/link.h"

namespace weft::verify {

// May In and Out be the same memory (schedule::inPlaceOut)? Then no rank reads an In slot that it has
// written as Out. (An op that does both at once has the same chunks on both sides, which the result
// shows.) Of schedules whose puts are staged: Out is written by its owner alone, and the engine sees
// to it that puts have read their sources by then.
Status verifyInPlace(const LinkedSchedule& linked);

}  // namespace weft::verify
