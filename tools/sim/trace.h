// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/job.h"

namespace weft::simulator {

// Chrome's trace format, which ui.perfetto.dev reads: a process for each rank, with a track for the ops
// of each lane and one for the messages of each, and an arrow from a message to its receiver.
std::string traceOf(const std::vector<sim::Span>& spans);

}  // namespace weft::simulator
