// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/published.h"

#include <algorithm>

namespace weft::train {
namespace {

constexpr const char* kDl1Post = "the post on BERT pre-training on up to 16 dl1.24xlarge";
constexpr const char* kTrn1Post =
    "the post on training GPT-NeoX and Pythia on trn1.32xlarge (3.2 M tokens a dollar)";

const std::vector<PublishedJob>& jobs() {
  static const std::vector<PublishedJob> all{
      {"bert-large-phase1",
       kDl1Post,
       "dl1.24xlarge",
       8,
       128,
       0,
       {{1, 1379.76}, {2, 2705.57}, {4, 5291.58}, {8, 9977.54}},
       ""},
      {"bert-1.5b-dl1",
       kDl1Post,
       "dl1.24xlarge",
       8,
       128,
       0,
       {{1, 276.66}, {8, 1883.63}, {16, 3659.15}},
       "phase 1 converged in about 25 hours on 8 nodes, and in 15 on 16"},
      {"pythia-6.9b-trn1",
       kTrn1Post,
       "trn1.32xlarge",
       32,
       2048,
       7.59,
       {{1, 10.4, 10102387}, {4, 35.8, 8693881}},
       "the price is that of three years reserved"},
      {"neox-20b-trn1",
       kTrn1Post,
       "trn1.32xlarge",
       32,
       2048,
       7.59,
       {{4, 13.60, 3302704},
        {8, 26.80, 3254134},
        {16, 54.30, 3296632},
        {32, 107.50, 3263241},
        {64, 212.00, 3217708}},
       "the price is that of three years reserved"}};
  return all;
}

}  // namespace

const PublishedJob* publishedJob(const std::string& recipe) {
  const auto found = std::ranges::find(jobs(), recipe, &PublishedJob::recipe);
  return found == jobs().end() ? nullptr : &*found;
}

std::optional<double> publishedEfficiency(const PublishedJob* job, int times) {
  if (job == nullptr) return {};
  for (const PublishedRow& row : job->rows)
    if (row.nodes == times * job->rows[0].nodes) return job->efficiency(row);
  return {};
}

double tokensPerUsd(double tokensPerSecond, double usdPerHour) {
  return tokensPerSecond * 3600 / usdPerHour;
}

}  // namespace weft::train
