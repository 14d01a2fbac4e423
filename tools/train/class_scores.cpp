// SPDX-License-Identifier: Apache-2.0
#include "tools/train/class_scores.h"

#include <algorithm>
#include <cmath>

namespace weft::train {
namespace {

ClassSums judgedOne(std::span<const float> scores, int64_t label) {
  if (label == Batch::kNoTarget) return {};
  const auto most = std::ranges::max_element(scores);
  double sum = 0;
  for (const float each : scores) sum += std::exp(static_cast<double>(each) - *most);
  const double own = static_cast<double>(scores[static_cast<size_t>(label)]) - *most;
  return {std::log(sum) - own, most - scores.begin() == label ? 1.0 : 0.0, 1};
}

}  // namespace

void ClassSums::add(const ClassSums& other) {
  loss += other.loss;
  right += other.right;
  samples += other.samples;
}

std::vector<ClassSums> judged(std::span<const float> scores, const Batch& batch) {
  const size_t classes = scores.size() / batch.samples;
  std::vector<ClassSums> all;
  for (size_t i = 0; i < batch.samples; ++i)
    all.push_back(judgedOne(scores.subspan(i * classes, classes), batch.labels[i]));
  return all;
}

}  // namespace weft::train
