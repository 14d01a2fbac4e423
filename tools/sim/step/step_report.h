// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/sim/cluster.h"
#include "tools/sim/step/model.h"
#include "tools/sim/step/predict_step.h"
#include "tools/sim/step/step_options.h"

namespace weft::simulator {

// For people: what stands above the table, and a line for each number of nodes.
std::string headOf(const StepOptions& options, const StepModel& model, const Cluster& cluster);
std::string lineOf(const StepOptions& options, const StepRow& row);

// Everything, with units in the keys.
std::string jsonOf(const StepOptions& options, const StepModel& model, const Cluster& cluster,
                   const std::vector<StepRow>& rows);

// Chrome's trace format: a process for each rank that was simulated, with a track for each stream.
std::string traceOf(const StepRow& row);

}  // namespace weft::simulator
