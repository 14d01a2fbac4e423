// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "verify/link.h"
#include "verify/verify.h"

namespace weft::verify {

// Runs one invocation on fingerprints and compares every Out slot with what the collective
// requires.
Status verifyResult(const LinkedSchedule& linked, const VerifyOptions& options);

}  // namespace weft::verify
