// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/run_page.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/train/reports/html.h"
#include "tools/train/reports/run_charts.h"
#include "tools/train/reports/words.h"

namespace weft::train {
namespace {

std::string besideLoss(const RunRecord& run, const Evaluation& found) {
  if (found.accuracy) return fmt::format("accuracy {:.2f} %", 100 * *found.accuracy);
  if (run.hasPerplexity) return fmt::format("perplexity {:.3f}", std::exp(found.loss));
  return "of both tasks";
}

using Rows = std::vector<std::vector<std::string>>;

double exposedPercent(const Summary& s) { return 100 * s.exposedMs / s.stepMs; }

std::string tookText(double seconds) {
  return seconds < 60 ? fmt::format("{:.3g} s", seconds) : durationText(seconds);
}

std::string wholeText(double value) { return grouped(static_cast<uint64_t>(std::llround(value))); }

double usdOf(const RunPage& page, double seconds) {
  return page.price->usdPerHour * page.summary.hosts * seconds / 3600;
}

std::string usdText(double usd) {
  return usd < 0.995 ? fmt::format("${:.2g}", usd) : fmt::format("${:.2f}", usd);
}

std::string failureOf(const RunPage& page) {
  const std::string& why = page.summary.failure;
  return why.empty() ? "" : section("Ended early", note(why));
}

std::string tilesOf(const RunPage& page) {
  const Summary& s = page.summary;
  std::vector<Tile> all{
      {"Loss", fmt::format("{:.4f}", s.lastLoss), fmt::format("from {:.4f}", s.firstLoss)}};
  if (s.validation)
    all.push_back({"Validation loss", fmt::format("{:.4f}", s.validation->loss),
                   besideLoss(page.run, *s.validation)});
  all.push_back({"Tokens/s", quantityText(s.tokensPerSecond),
                 quantityText(s.sequencesPerSecond) + " sequences/s"});
  all.push_back(
      {"TFLOP/s", fmt::format("{:.3g}", s.teraflops),
       s.utilization ? fmt::format("MFU {:.1f} %", 100 * *s.utilization) : "no peak was told"});
  all.push_back({"Communication", fmt::format("{:.1f} %", exposedPercent(s)),
                 fmt::format("of a step exposed: {:.3g} ms", s.exposedMs)});
  all.push_back(
      {"Time", tookText(s.elapsedSeconds), fmt::format("to step {}", page.run.steps.back().step)});
  if (page.price)
    all.push_back({"Price", usdText(usdOf(page, s.elapsedSeconds)),
                   fmt::format("{} host{} of ${:g}/h", s.hosts, s.hosts == 1 ? "" : "s",
                               page.price->usdPerHour)});
  return tiles(all);
}

std::string throughputOf(const RunPage& page) {
  const Summary& s = page.summary;
  Rows rows{
      {"Ranks", fmt::format("{} on {} host{}, {} thread{} each", s.ranks, s.hosts,
                            s.hosts == 1 ? "" : "s", s.threads, s.threads == 1 ? "" : "s")},
      {"Parameters", fmt::format("{:.2f} M", s.parameters / 1e6)},
      {"Step, median", fmt::format("{:.2f} ms", s.stepMs)},
      {"Exposed communication, median of a step", fmt::format("{:.3f} ms", s.exposedMs)},
      {"Bytes that a rank moves in a step, for each parameter", fmt::format("{:.3f}", s.wireBytes)},
      {"Weights, gradients and state of a rank", fmt::format("{:.1f} MB", s.memoryBytes / 1e6)},
      {"Batches", loadingInWords(s.loading)}};
  if (s.weights) rows.push_back({"Fingerprint of the weights", fmt::format("{:016x}", *s.weights)});
  return table(rows, true);
}

std::string targetText(const RunPage& page) {
  const std::optional<Reached> reached = whenReached(page.run, *page.targetLoss);
  if (!reached) return "not reached by this run";
  std::string text = fmt::format("reached after step {} ({:.4f}), {}", reached->step, reached->loss,
                                 tookText(reached->elapsedSeconds));
  if (page.price) text += ", " + usdText(usdOf(page, reached->elapsedSeconds));
  return text;
}

// Of the run since it began, which need not have been at the first step.
std::string timeAndPriceOf(const RunPage& page) {
  const Summary& s = page.summary;
  std::string whole = fmt::format("{} for steps {} to {}", tookText(s.elapsedSeconds),
                                  page.run.steps.front().step, page.run.steps.back().step);
  if (page.price) whole += ", " + usdText(usdOf(page, s.elapsedSeconds));
  Rows rows{{"This run", whole}};
  if (page.targetLoss)
    rows.push_back({fmt::format("To a loss of {:g}", *page.targetLoss), targetText(page)});
  if (page.price) {
    const double dollars = page.price->usdPerHour * s.hosts;
    rows.push_back({"Price", fmt::format("${:g} an hour and host{}: {}", page.price->usdPerHour,
                                         page.price->name.empty() ? "" : ", " + page.price->name,
                                         page.price->source)});
    rows.push_back({"Tokens a dollar", wholeText(tokensPerUsd(s.tokensPerSecond, dollars))});
  }
  return section("Time and price", table(rows, true));
}

std::vector<std::string> measuredRow(const RunPage& page) {
  const Summary& s = page.summary;
  const double dollars = page.price ? page.price->usdPerHour * s.hosts : 0;
  return {"this run, by exposed communication",
          std::to_string(s.hosts),
          std::to_string(s.ranks),
          fmt::format("{:.2f}", s.sequencesPerSecond),
          fmt::format("{:.3f}", s.sequencesPerSecond / s.ranks),
          fmt::format("{:.1f} %", 100 - exposedPercent(s)),
          page.price ? wholeText(tokensPerUsd(s.tokensPerSecond, dollars)) : "-"};
}

}  // namespace

std::string publishedSection(const PublishedJob* job, const std::vector<std::string>& measured) {
  if (job == nullptr) return {};
  Rows rows{{"", "nodes", "ranks", "sequences/s", "a rank", "efficiency", "tokens/$"}};
  for (const PublishedRow& row : job->rows)
    rows.push_back({"published", std::to_string(row.nodes),
                    std::to_string(row.nodes * job->ranksOfNode),
                    fmt::format("{:.2f}", row.sequencesPerSecond),
                    fmt::format("{:.3f}", row.sequencesPerSecond / row.nodes / job->ranksOfNode),
                    fmt::format("{:.1f} %", 100 * job->efficiency(row)),
                    row.tokensPerUsd == 0 ? "-" : wholeText(row.tokensPerUsd)});
  if (!measured.empty()) rows.push_back(measured);
  return section("Beside what was published",
                 table(rows) + note(fmt::format("Published: {}, {} of {} ranks{}. Efficiency: of a "
                                                "node, beside the first row's.",
                                                job->source, job->instance, job->ranksOfNode,
                                                job->remark.empty() ? "" : "; " + job->remark)));
}

std::string settingsSection(const std::vector<Setting>& settings) {
  Rows given, others;
  for (const Setting& each : settings)
    (each.isGiven ? given : others).push_back({each.name, each.value});
  std::string html = given.empty() ? note("All are the defaults.") : table(given, true);
  if (!others.empty())
    html += "<details><summary>Defaults</summary>\n" + table(others, true) + "</details>\n";
  return section("Settings", html);
}

std::string htmlOf(const RunPage& p) {
  return page(p.title, p.subtitle,
              failureOf(p) + tilesOf(p) +
                  section("Learning", chartsOfLearning(p.run, p.targetLoss, kMostPoints)) +
                  section("Speed", chartsOfSpeed(p.run, kMostPoints) + throughputOf(p)) +
                  timeAndPriceOf(p) + publishedSection(p.published, measuredRow(p)) +
                  settingsSection(p.settings));
}

}  // namespace weft::train
