// SPDX-License-Identifier: Apache-2.0
// What a scaling table says of its measurements. Each number of ranks is measured once a round, so
// that what else the machine does meets all of them; a rate is compared with one rank's of the same
// round.
#pragma once

#include <string>
#include <vector>

#include "tools/train/reports/published.h"

namespace weft::train {

// Of one number of ranks, by round: sequences per second as one training and as independent ranks, or
// copies of a model that several ranks have in parts, and milliseconds of exposed communication. The
// fewest ranks that have a model are both.
struct ScalingRounds {
  int ranks = 1;
  std::vector<double> together, independent, exposedMs;
  std::vector<std::string> hosts = {};  // that the ranks are on, in their order
};

struct Spread {
  double median, least, most;
};
Spread spreadOf(const std::vector<double>& values);

// Of so many ranks, in percent by round: together's rate a rank over that of the fewest ranks, which is
// 100 for these; and over that of independent ranks.
std::vector<double> efficiencies(const ScalingRounds& many, const ScalingRounds& fewest);
std::vector<double> communicationEfficiencies(const ScalingRounds& many);

// With the efficiency that was published of so many times the nodes, where a job is given.
std::string scalingHead(const PublishedJob* published);
std::string scalingRow(const ScalingRounds& many, const ScalingRounds& fewest,
                       const PublishedJob* published);
// The table for programs: medians and ranges, with units in the names.
std::string scalingJson(const std::vector<ScalingRounds>& rows, const PublishedJob* published);
std::string scalingCsv(const std::vector<ScalingRounds>& rows, const PublishedJob* published);
// What can be told apart: one line, and a warning where the same run differed so much from round to
// round that other work must have been on the machine.
std::string scalingNoise(const std::vector<ScalingRounds>& all);

}  // namespace weft::train
