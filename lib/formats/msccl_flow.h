// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"
#include "formats/flow.h"
#include "formats/limits.h"
#include "formats/msccl.h"

namespace weft::formats {

// Runs all blocks of all GPUs on values, in rounds: in each, every block that can takes one step, so
// that a rank's serial program has what the blocks do side by side in the order of time.
//
// InvalidArgument, with file and line: blocks that share a channel, a message that nobody receives or
// that has another length there, steps that wait for each other, a chunk that is read before it is
// there, sums that do not belong together, and results that are not the collective's.
Status runMsccl(const MscclAlgorithm& algorithm, const std::string& file, const Limits& limits,
                Flow* flow);

}  // namespace weft::formats
