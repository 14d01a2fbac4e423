// SPDX-License-Identifier: Apache-2.0
// A scaling table as one HTML page.
#pragma once

#include <string>
#include <vector>

#include "tools/train/reports/published.h"
#include "tools/train/reports/scaling_table.h"
#include "tools/train/reports/summary.h"

namespace weft::train {

struct ScalingPage {
  std::string title, subtitle;
  std::string what;                        // was measured, in a sentence
  const std::vector<ScalingRounds>& rows;  // the first is one rank's
  const std::vector<Setting>& settings;
  const PublishedJob* published = nullptr;
};

std::string htmlOf(const ScalingPage& page);

}  // namespace weft::train
