// SPDX-License-Identifier: Apache-2.0
#include "tools/train/pace.h"

#include <algorithm>
#include <utility>

namespace weft::train {
namespace {

constexpr size_t kWarmUpSteps = 2;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of each run of layers, from a step on.
std::vector<PassSeconds> mediansOf(const std::vector<std::vector<PassSeconds>>& passes,
                                   std::ptrdiff_t from) {
  std::vector<PassSeconds> medians;
  for (const std::vector<PassSeconds>& ofRun : passes) {
    std::vector<double> forward, backward;
    for (auto step = ofRun.begin() + from; step != ofRun.end(); ++step) {
      forward.push_back(step->forward);
      backward.push_back(step->backward);
    }
    medians.push_back({median(std::move(forward)), median(std::move(backward))});
  }
  return medians;
}

}  // namespace

void PaceMeter::add(const StepReport& report) {
  steps_.push_back(report.seconds);
  exposed_.push_back(report.exposedSeconds);
  wire_.push_back(report.wireBytes);
  stageWaits_.push_back(report.stageWaitSeconds);
  passes_.resize(report.passes.size());
  for (size_t run = 0; run < passes_.size(); ++run) passes_[run].push_back(report.passes[run]);
}

Pace PaceMeter::pace() const {
  const size_t skip = std::min(kWarmUpSteps, steps_.size() - std::min<size_t>(steps_.size(), 1));
  const auto from = static_cast<std::ptrdiff_t>(skip);
  return {median({steps_.begin() + from, steps_.end()}),
          median({exposed_.begin() + from, exposed_.end()}),
          median({wire_.begin() + from, wire_.end()}),
          median({stageWaits_.begin() + from, stageWaits_.end()}), mediansOf(passes_, from)};
}

}  // namespace weft::train
