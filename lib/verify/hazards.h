// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "verify/link.h"
#include "verify/verify.h"

namespace weft::verify {

// Proves that no two conflicting accesses to a slot can happen at the same time or in both orders;
// and the promises agreement and outAfterEntry, if asked.
Status verifyHazards(const LinkedSchedule& linked, const VerifyOptions& options);

}  // namespace weft::verify
