// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace weft::train {

const std::vector<Price>& instancePrices() {
  static const std::vector<Price> all{
      {"dl1.24xlarge", 13.11,
       "on demand, the list price in N. Virginia when the instance came; its post tells none"},
      {"p4d.24xlarge", 32.77,
       "on demand, the list price in N. Virginia in the years of the posts; its post tells none"},
      {"trn1.32xlarge", 21.50,
       "on demand, the list price in N. Virginia in the years of the posts"},
      {"trn1.32xlarge-reserved", 7.59,
       "three years reserved, as the post on GPT-NeoX and Pythia reckons"}};
  return all;
}

Price priceOf(const std::string& text) {
  const auto found = std::ranges::find(instancePrices(), text, &Price::name);
  if (found != instancePrices().end()) return *found;
  double usd = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, usd);
  if (error == std::errc{} && rest == end && std::isfinite(usd) && usd > 0)
    return {"", usd, "as --price says"};
  std::string names;
  for (const Price& each : instancePrices()) names += ", " + each.name;
  throw std::invalid_argument(
      fmt::format("{} is neither dollars an hour and instance, such as 21.5, nor one of {}", text,
                  names.substr(2)));
}

std::optional<Reached> whenReached(const RunRecord& run, double targetLoss) {
  for (const EvaluationRecord& each : run.evaluations)
    if (each.found.loss <= targetLoss)
      return Reached{each.step, each.elapsedSeconds, each.found.loss};
  if (!run.evaluations.empty()) return {};
  double sum = 0;
  for (size_t i = 0; i < run.steps.size(); ++i) {
    sum += run.steps[i].loss;
    if (i >= kJudgedSteps) sum -= run.steps[i - kJudgedSteps].loss;
    if (i + 1 < kJudgedSteps || sum / kJudgedSteps > targetLoss) continue;
    return Reached{run.steps[i].step, run.steps[i].elapsedSeconds, sum / kJudgedSteps};
  }
  return {};
}

}  // namespace weft::train
