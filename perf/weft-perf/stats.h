// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace weft::perf {

// Statistics of the iterations of one measurement, in the unit of its input.
struct Statistics {
  double min, max, mean, p50, p95, p99, deviation;

  double variationPercent() const { return mean > 0 ? deviation / mean * 100 : 0; }
};

// `values` must not be empty. Percentile p is the smallest value that p % of them do not exceed
// (nearest rank); the deviation is the population's.
Statistics statisticsOf(std::vector<double> values);

// As above, of values that need not be in order. `percent` is in [0, 100].
double percentileOf(std::vector<double> values, double percent);

double meanOf(const std::vector<double>& values);

// -a of nccl-tests: what one number stands for many ranks.
enum class Average { Rank0 = 0, Mean = 1, Min = 2, Max = 3 };
double averageOf(const std::vector<double>& perRank, Average average);

}  // namespace weft::perf
