// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft::perf {
namespace {

double meanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double percentileOf(const std::vector<double>& sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

Statistics statisticsOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double mean = meanOf(values);
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return {values.front(),
          values.back(),
          mean,
          percentileOf(values, 50),
          percentileOf(values, 95),
          percentileOf(values, 99),
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
