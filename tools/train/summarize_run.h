// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tools/train/options.h"
#include "tools/train/pace.h"
#include "tools/train/report.h"
#include "tools/train/reports/summary.h"
#include "tools/train/trainer.h"
#include "weft/weft.hpp"

namespace weft::train {

// Collective, after a step at least, of the ranks that train together or, with options.independent, side by
// side. On rank 0, whose report is not null and gets it, the figures of all. `failure`: why the run ends,
// or empty; only then all weights are compared.
std::optional<Summary> summarizeRun(const Options& options, Communicator& world, Trainer& trainer,
                                    const PaceMeter& meter, int threads, const std::string& failure,
                                    Report* report);

}  // namespace weft::train
