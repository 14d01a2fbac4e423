// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/scaling_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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

nlohmann::ordered_json jsonOf(const Spread& s) {
  return {{"median", s.median}, {"least", s.least}, {"most", s.most}};
}

std::string publishedColumn(const PublishedJob* job, int ranks) {
  if (job == nullptr) return {};
  const auto known = publishedEfficiency(job, ranks);
  return known ? fmt::format("{:>10.1f} %", 100 * *known) : fmt::format("{:>12}", "-");
}

}  // namespace

Spread spreadOf(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return {tools::median(values), least, most};
}

std::vector<double> efficiencies(const ScalingRounds& many, const ScalingRounds& fewest) {
  const double times = static_cast<double>(many.ranks) / fewest.ranks;
  std::vector<double> all;
  for (size_t round = 0; round < many.together.size(); ++round)
    all.push_back(100 * many.together[round] / times / fewest.together[round]);
  return all;
}

std::vector<double> communicationEfficiencies(const ScalingRounds& many) {
  std::vector<double> all;
  for (size_t round = 0; round < many.together.size(); ++round)
    all.push_back(100 * many.together[round] / many.independent[round]);
  return all;
}

std::string scalingHead(const PublishedJob* published) {
  return fmt::format("{:>5} {:>9} {:>17} {:>10} {:>11} {:>13} {:>17} {:>11} {:>13} {:>11}{}\n",
                     "ranks", "seq/s", "range", "seq/s/rank", "efficiency", "range",
                     "independent seq/s", "comm eff.", "range", "exposed(ms)",
                     published == nullptr ? "" : "   published");
}

std::string scalingRow(const ScalingRounds& many, const ScalingRounds& fewest,
                       const PublishedJob* published) {
  const Spread together = spreadOf(many.together), all = spreadOf(efficiencies(many, fewest)),
               communication = spreadOf(communicationEfficiencies(many));
  return fmt::format(
      "{:>5} {:>9.2f} {:>17} {:>10.2f} {:>9.1f} % {:>13} {:>17.2f} {:>9.1f} % {:>13} {:>11.2f}{}\n",
      many.ranks, together.median, rangeOf(together, 2), together.median / many.ranks, all.median,
      rangeOf(all, 1), tools::median(many.independent), communication.median,
      rangeOf(communication, 1), tools::median(many.exposedMs),
      publishedColumn(published, many.ranks));
}

std::string scalingNoise(const std::vector<ScalingRounds>& all) {
  if (all.front().together.size() < 2)
    return "# of one round nobody knows by how much the next one differs (--scaling-rounds)\n";
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

std::string scalingJson(const std::vector<ScalingRounds>& rows, const PublishedJob* published) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const ScalingRounds& row : rows) {
    nlohmann::ordered_json json = {
        {"ranks", row.ranks},
        {"sequences_per_s", jsonOf(spreadOf(row.together))},
        {"independent_sequences_per_s", jsonOf(spreadOf(row.independent))},
        {"efficiency_percent", jsonOf(spreadOf(efficiencies(row, rows.front())))},
        {"communication_efficiency_percent", jsonOf(spreadOf(communicationEfficiencies(row)))},
        {"exposed_ms", jsonOf(spreadOf(row.exposedMs))},
        {"hosts", row.hosts}};
    if (const auto known = publishedEfficiency(published, row.ranks))
      json["published_efficiency_percent"] = 100 * *known;
    all.push_back(json);
  }
  return nlohmann::ordered_json{{"scaling", all}}.dump(2) + '\n';
}

std::string scalingCsv(const std::vector<ScalingRounds>& rows, const PublishedJob* published) {
  std::string csv =
      "ranks,sequences_per_s,least_sequences_per_s,most_sequences_per_s,independent_sequences_per_"
      "s,"
      "efficiency_percent,communication_efficiency_percent,exposed_ms,"
      "published_efficiency_percent,hosts\n";
  for (const ScalingRounds& row : rows) {
    const Spread rate = spreadOf(row.together);
    const auto known = publishedEfficiency(published, row.ranks);
    csv += fmt::format("{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{},{}\n", row.ranks,
                       rate.median, rate.least, rate.most, tools::median(row.independent),
                       tools::median(efficiencies(row, rows.front())),
                       tools::median(communicationEfficiencies(row)), tools::median(row.exposedMs),
                       known ? fmt::format("{:.6g}", 100 * *known) : "", fmt::join(row.hosts, " "));
  }
  return csv;
}

}  // namespace weft::train
