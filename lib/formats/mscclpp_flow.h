// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"
#include "formats/flow.h"
#include "formats/limits.h"
#include "formats/mscclpp.h"

namespace weft::formats {

// Runs all blocks of all GPUs on values, in rounds as runMsccl() does.
//
// A put is a message that its target receives when it waits for a signal that was given after it, or,
// of packets, when it first reads one of them. What is read from a peer's buffer is a message of that
// peer's, as long as it has what is read. Signals, barriers and semaphores order blocks here; of what
// runs they are no part, since messages say all that ranks must know.
//
// InvalidArgument, with file and line: blocks that wait for ever, a put that nobody waits for, a chunk
// that is read before it is there or outside of its buffer, sums that do not belong together, and
// results that are not the collective's.
Status runMscclpp(const MscclppPlan& plan, const std::string& file, const Limits& limits,
                  Flow* flow);

}  // namespace weft::formats
