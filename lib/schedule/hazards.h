// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "schedule/link.h"
#include "schedule/verify.h"

namespace weft {

// Proves that no two conflicting accesses to a slot can happen at the same time or in both orders,
// over `options.invocations` invocations; and the promises agreement and outAfterEntry, if asked.
Status verifyHazards(const LinkedSchedule& linked, const VerifyOptions& options);

}  // namespace weft
