// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/scaling_page.h"

#include <fmt/format.h>

#include "perf/common/median.h"
#include "tools/train/reports/html.h"
#include "tools/train/reports/plot.h"
#include "tools/train/reports/run_page.h"
#include "tools/train/reports/words.h"

namespace weft::train {
namespace {

std::string inPercent(const Spread& s) {
  return fmt::format("{:.1f} % ({:.1f} to {:.1f})", s.median, s.least, s.most);
}

std::string tilesOf(const ScalingPage& page) {
  const ScalingRounds &one = page.rows.front(), &most = page.rows.back();
  const Spread rate = spreadOf(most.together), all = spreadOf(efficiencies(most, one)),
               communication = spreadOf(communicationEfficiencies(most));
  return tiles({{"Sequences/s", quantityText(rate.median),
                 fmt::format("of {} ranks; {} of one", most.ranks,
                             quantityText(spreadOf(one.together).median))},
                {"Efficiency", fmt::format("{:.1f} %", all.median), "a rank, beside one alone"},
                {"Of communication", fmt::format("{:.1f} %", communication.median),
                 "beside independent ranks"},
                {"Exposed", fmt::format("{:.3g} ms", tools::median(most.exposedMs)),
                 "of a step waits for it"}});
}

std::string chartOfRates(const ScalingPage& page) {
  const ScalingRounds& fewest = page.rows.front();
  const double single = spreadOf(fewest.together).median / fewest.ranks;
  Line together{"one training", {}, true}, independent{"no exchange", {}, true},
      linear{"linear", {}};
  for (const ScalingRounds& row : page.rows) {
    const double ranks = row.ranks;
    together.points.push_back({ranks, spreadOf(row.together).median});
    independent.points.push_back({ranks, spreadOf(row.independent).median});
    linear.points.push_back({ranks, single * ranks});
  }
  return figure("Throughput",
                plotSvg({"Throughput", "ranks", "sequences/s", {together, independent, linear}}));
}

std::string chartOfEfficiency(const ScalingPage& page) {
  Line measured{"measured", {}, true}, published{"published", {}, true};
  for (const ScalingRounds& row : page.rows) {
    const double ranks = row.ranks;
    measured.points.push_back({ranks, spreadOf(efficiencies(row, page.rows.front())).median});
    if (const auto known = publishedEfficiency(page.published, row.ranks))
      published.points.push_back({ranks, 100 * *known});
  }
  std::vector<Line> lines{measured};
  if (published.points.size() > 1) lines.push_back(published);
  const std::string caption = "Efficiency, a rank beside one alone";
  return figure(caption, plotSvg({caption, "ranks", "percent", lines}));
}

std::string tableOf(const ScalingPage& page) {
  std::vector<std::vector<std::string>> rows{
      {"ranks", "sequences/s", "a rank", "efficiency", "of communication", "exposed", "published"}};
  for (const ScalingRounds& row : page.rows) {
    const Spread rate = spreadOf(row.together);
    const auto known = publishedEfficiency(page.published, row.ranks);
    rows.push_back({std::to_string(row.ranks),
                    fmt::format("{:.2f} ({:.2f} to {:.2f})", rate.median, rate.least, rate.most),
                    fmt::format("{:.2f}", rate.median / row.ranks),
                    inPercent(spreadOf(efficiencies(row, page.rows.front()))),
                    inPercent(spreadOf(communicationEfficiencies(row))),
                    fmt::format("{:.2f} ms", tools::median(row.exposedMs)),
                    known ? fmt::format("{:.1f} %", 100 * *known) : "-"});
  }
  return table(rows);
}

}  // namespace

std::string htmlOf(const ScalingPage& p) {
  std::string noise = scalingNoise(p.rows).substr(2);
  noise.pop_back();
  const std::string charts =
      "<div class=\"charts\">\n" + chartOfRates(p) + chartOfEfficiency(p) + "</div>\n";
  return page(p.title, p.subtitle,
              tilesOf(p) + section("Scaling", charts + tableOf(p) + note(p.what) + note(noise)) +
                  publishedSection(p.published, {}) + settingsSection(p.settings));
}

}  // namespace weft::train
