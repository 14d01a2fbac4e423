// SPDX-License-Identifier: Apache-2.0
// How well a classification does, from what its model says of samples.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tools/train/batch.h"
#include "tools/train/reports/run_record.h"

namespace weft::train {

// Sums over samples. Those of no class, which fill up the last step of an evaluation, count for nothing.
struct ClassSums {
  double loss = 0, right = 0, samples = 0;

  void add(const ClassSums& other);
  Evaluation mean() const { return {loss / samples, right / samples}; }
};

// Of each sample: cross entropy of its `scores`, [samples, classes], in nats, and whether its class has the largest one
// (of equal ones, the first).
std::vector<ClassSums> judged(std::span<const float> scores, const Batch& batch);

}  // namespace weft::train
