// SPDX-License-Identifier: Apache-2.0
// A run as one HTML page: how it converged, how fast it was, and what that costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/train/reports/price.h"
#include "tools/train/reports/published.h"
#include "tools/train/reports/run_record.h"
#include "tools/train/reports/summary.h"

namespace weft::train {

struct RunPage {
  std::string title, subtitle;
  const RunRecord& run;  // of a step at least
  const Summary& summary;
  const std::vector<Setting>& settings;
  std::optional<Price> price = {};
  std::optional<double> targetLoss = {};
  const PublishedJob* published = nullptr;  // of the recipe
};

std::string htmlOf(const RunPage& page);

// Parts of this and other pages. What was published of a job, and beside it a row of what is measured
// here, if there is one; nothing where there is no job.
std::string publishedSection(const PublishedJob* job, const std::vector<std::string>& measured);
std::string settingsSection(const std::vector<Setting>& settings);

// Points of a chart. Where a run has more steps than that, each is the mean of several.
constexpr size_t kMostPoints = 4000;

}  // namespace weft::train
