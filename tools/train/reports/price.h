// SPDX-License-Identifier: Apache-2.0
// What an hour costs, and what was reached for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/train/reports/run_record.h"

namespace weft::train {

struct Price {
  std::string name;  // of an instance, or empty
  double usdPerHour = 0;
  std::string source;  // in words
};

// The instances of the published jobs.
const std::vector<Price>& instancePrices();

// "21.5", or one of those names. Throws std::invalid_argument with a sentence that lists them.
Price priceOf(const std::string& text);

// When a run had learned so much.
struct Reached {
  int64_t step = 0;
  double elapsedSeconds = 0;
  double loss = 0;
};
// Judged by the validation loss, or where there is none by the mean loss of `kJudgedSteps` steps.
constexpr int kJudgedSteps = 10;
std::optional<Reached> whenReached(const RunRecord& run, double targetLoss);

}  // namespace weft::train
