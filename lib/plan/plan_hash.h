// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace weft::plan {

// A fingerprint of the op list that runs: every op with its operands and how the message is cut.
// Whoever prints it, as weft-perf --explain and weft-sim do, has bound the very same list.
std::uint64_t hashOf(const Plan& plan);

// Of what a call runs: where all buffers are shared neither what would run otherwise, nor that those that
// are not would be copied.
std::uint64_t hashOfRun(const Plan& plan, bool sharesBuffers);

}  // namespace weft::plan
