// SPDX-License-Identifier: Apache-2.0
#include "tools/train/scaling_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "perf/common/median.h"

namespace weft::train {
namespace {

constexpr double kQuiet = 0.1;  // how far rounds of one run are apart where nobody else computes

std::string rangeOf(const Spread& s, int digits) {
  return fmt::format("{:.{}f}-{:.{}f}", s.least, digits, s.most, digits);
}

double widthOf(const std::vector<double>& rates) {
  const Spread s = spreadOf(rates);
  return s.median > 0 ? (s.most - s.least) / s.median : 0;
}

}  // namespace

Spread spreadOf(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return {tools::median(values), least, most};
}

std::vector<double> efficiencies(const ScalingRounds& many, const ScalingRounds& one) {
  std::vector<double> all;
  for (size_t round = 0; round < many.together.size(); ++round)
    all.push_back(many.ranks == 1 ? 100.0
                                  : 100 * many.together[round] / many.ranks / one.together[round]);
  return all;
}

std::vector<double> communicationEfficiencies(const ScalingRounds& many) {
  std::vector<double> all;
  for (size_t round = 0; round < many.together.size(); ++round)
    all.push_back(many.ranks == 1 ? 100.0 : 100 * many.together[round] / many.independent[round]);
  return all;
}

std::string scalingHead() {
  return fmt::format("{:>5} {:>9} {:>17} {:>10} {:>11} {:>13} {:>17} {:>11} {:>13} {:>11}\n",
                     "ranks", "seq/s", "range", "seq/s/rank", "efficiency", "range",
                     "independent seq/s", "comm eff.", "range", "exposed(ms)");
}

std::string scalingRow(const ScalingRounds& many, const ScalingRounds& one) {
  const Spread together = spreadOf(many.together), all = spreadOf(efficiencies(many, one)),
               communication = spreadOf(communicationEfficiencies(many));
  return fmt::format(
      "{:>5} {:>9.2f} {:>17} {:>10.2f} {:>9.1f} % {:>13} {:>17.2f} {:>9.1f} % {:>13} {:>11.2f}\n",
      many.ranks, together.median, rangeOf(together, 2), together.median / many.ranks, all.median,
      rangeOf(all, 1), tools::median(many.independent), communication.median,
      rangeOf(communication, 1), tools::median(many.exposedMs));
}

std::string scalingNoise(const std::vector<ScalingRounds>& all) {
  double widest = 0;
  int ranks = 1;
  for (const ScalingRounds& rounds : all) {
    for (const auto* rates : {&rounds.together, &rounds.independent}) {
      if (widthOf(*rates) <= widest) continue;
      widest = widthOf(*rates);
      ranks = rounds.ranks;
    }
  }
  const std::string said =
      fmt::format("# the same run differed by up to {:.1f} % from round to round (with {} rank{})",
                  100 * widest, ranks, ranks == 1 ? "" : "s");
  if (widest <= kQuiet) return said + '\n';
  return said +
         ": too noisy to tell efficiencies closer than that; other work ran on this machine, so "
         "measure when it is at rest, or for longer (--scaling-seconds, --scaling-rounds)\n";
}

}  // namespace weft::train
