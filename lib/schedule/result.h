// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "schedule/link.h"
#include "schedule/verify.h"

namespace weft {

// Runs one invocation on fingerprints and compares every Out slot with what the collective
// requires.
Status verifyResult(const LinkedSchedule& linked, const VerifyOptions& options);

}  // namespace weft
