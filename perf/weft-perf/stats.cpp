// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft::perf {
namespace {

double nearestRank(const std::vector<double>& sorted, double percent) {
  const double rank = std::ceil(percent * static_cast<double>(sorted.size()) / 100);
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

double meanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double percentileOf(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  return nearestRank(values, percent);
}

Statistics statisticsOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double mean = meanOf(values);
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return {values.front(),
          values.back(),
          mean,
          nearestRank(values, 50),
          nearestRank(values, 95),
          nearestRank(values, 99),
          std::sqrt(squares / static_cast<double>(values.size()))};
}

double averageOf(const std::vector<double>& perRank, Average average) {
  switch (average) {
    case Average::Rank0:
      return perRank.front();
    case Average::Min:
      return *std::min_element(perRank.begin(), perRank.end());
    case Average::Max:
      return *std::max_element(perRank.begin(), perRank.end());
    case Average::Mean:
      break;
  }
  return meanOf(perRank);
}

}  // namespace weft::perf
