// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace weft::plan {

// A fingerprint of the op list that runs: every op with its operands and how the message is cut.
// Whoever prints it, as weft-perf --explain and weft-sim do, has bound the very same list.
std::uint64_t hashOf(const Plan& plan);

// The same of a run of this plan, whatever would run otherwise. Where all buffers are shared, that others
// would be copied makes no difference.
std::uint64_t hashOfRun(const Plan& plan, bool sharesBuffers);

}  // namespace weft::plan
