// SPDX-License-Identifier: Apache-2.0
// What was published of the jobs that are recipes: throughput by size, and what a dollar bought.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::train {

struct PublishedRow {
  int nodes = 1;
  double sequencesPerSecond = 0;
  double tokensPerUsd = 0;  // 0 = not told
};

struct PublishedJob {
  std::string recipe;
  std::string source;    // the post, in words
  std::string instance;  // a node
  int ranksOfNode = 1;
  int64_t length = 0;     // tokens of a sequence
  double usdPerHour = 0;  // of a node, as the post reckons; 0 = not told
  std::vector<PublishedRow> rows;
  std::string remark;  // what else it tells of time and price

  // Of a node, over that of the first row.
  double efficiency(const PublishedRow& row) const {
    return row.sequencesPerSecond / row.nodes / (rows[0].sequencesPerSecond / rows[0].nodes);
  }
};

// The recipes that have a table; null for any other.
const PublishedJob* publishedJob(const std::string& recipe);

// Where a job of `times` as many nodes as that of the first row was published; null knows nothing.
std::optional<double> publishedEfficiency(const PublishedJob* job, int times);

// What a dollar buys.
double tokensPerUsd(double tokensPerSecond, double usdPerHour);

}  // namespace weft::train
