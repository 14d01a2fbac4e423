// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tools/train/reports/run_record.h"

namespace weft::train {

// The figures of a page, as HTML: of what is learned, and of how fast. A chart has a point for each
// step, or for the mean of several where there are more than `mostPoints`.
std::string chartsOfLearning(const RunRecord& run, std::optional<double> targetLoss,
                             size_t mostPoints);
std::string chartsOfSpeed(const RunRecord& run, size_t mostPoints);

}  // namespace weft::train
