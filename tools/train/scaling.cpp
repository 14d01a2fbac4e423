// SPDX-License-Identifier: Apache-2.0
#include "tools/train/scaling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "perf/common/machine.h"
#include "perf/common/median.h"
#include "perf/common/program.h"
#include "perf/common/report_file.h"
#include "tools/train/reports/plot.h"
#include "tools/train/reports/scaling_page.h"
#include "tools/train/reports/scaling_table.h"
#include "tools/train/reports/words.h"

namespace weft::train {
namespace {

// Each once, in the order of ranks.
std::vector<std::string> distinct(std::vector<std::string> names) {
  std::vector<std::string> seen;
  std::erase_if(names, [&](const std::string& name) {
    if (std::ranges::find(seen, name) != seen.end()) return true;
    seen.push_back(name);
    return false;
  });
  return names;
}

class ScalingTable {
 public:
  ScalingTable(const Options& options, const ScalingRanks& ranks)
      : options_(options),
        ranks_(ranks),
        published_(publishedJob(options.recipe)),
        out_(tools::besides({options.svg, options.report, options.json, options.csv})),
        fewest_(fewestRanks(options)) {
    std::set<int> counts(options.scaling.begin(), options.scaling.end());
    counts.insert(fewest_);
    for (const int count : counts) rows_[count] = {count, {}, {}, {}, hostsOf(count)};
  }

  void measure() {
    say(fmt::format("# weft-train scaling: {}\n{}", what(), ranks_.note));
    for (int64_t round = 0; round < options_.scalingRounds; ++round) measureRound(round);
  }

  void print() {
    printTable();
    if (!options_.svg.empty()) draw();
    if (!options_.report.empty()) writePage();
    if (!options_.json.empty())
      tools::ReportFile(options_.json).write(scalingJson(measured_, published_));
    if (!options_.csv.empty())
      tools::ReportFile(options_.csv).write(scalingCsv(measured_, published_));
  }

 private:
  // Ranks of one host of this program's own are all there, however many are asked for.
  std::vector<std::string> hostsOf(int count) const {
    const size_t known = std::min(ranks_.hosts.size(), static_cast<size_t>(count));
    return distinct({ranks_.hosts.begin(), ranks_.hosts.begin() + static_cast<ptrdiff_t>(known)});
  }

  std::string what() const {
    return fmt::format(
        "{} sequences of {} tokens per {} and step (weak scaling), {} thread(s) per rank in "
        "every row, {}, medians of {} rounds of {} s",
        options_.batch * options_.accumulate, options_.length,
        fewest_ == 1 ? "rank" : fmt::format("{} ranks", fewest_), threadsOfScaling(options_),
        ranks_.where, options_.scalingRounds, options_.scalingSeconds);
  }

  void say(const std::string& text) const {
    if (!ranks_.speaks) return;
    fmt::print(out_, "{}", text);
    std::fflush(out_);
  }

  // Up, and the next time down again.
  void measureRound(int64_t round) {
    std::vector<int> counts;
    for (const auto& [ranks, row] : rows_) counts.push_back(ranks);
    if (round % 2 == 1) std::ranges::reverse(counts);
    std::string said;
    for (const int ranks : counts) {
      ScalingRounds& row = rows_[ranks];
      const Throughput together = ranks_.measure(ranks, false);
      const Throughput independent = ranks == fewest_ ? together : ranks_.measure(ranks, true);
      row.together.push_back(together.sequencesPerSecond);
      row.independent.push_back(independent.sequencesPerSecond);
      row.exposedMs.push_back(together.exposedMs);
      said +=
          fmt::format("{} {}: {:.2f}", said.empty() ? "" : ",", ranks, together.sequencesPerSecond);
    }
    say(fmt::format("# round {} of {}, seq/s by ranks:{}\n", round + 1, options_.scalingRounds,
                    said));
  }

  void printTable() {
    say(scalingHead(published_));
    const ScalingRounds& fewest = rows_.at(fewest_);
    const double single = tools::median(fewest.together) / fewest_;
    for (const auto& [ranks, row] : rows_) measured_.push_back(row);
    for (const int ranks : options_.scaling) {
      const ScalingRounds& row = rows_.at(ranks);
      say(scalingRow(row, fewest, published_));
      linear_.points.push_back({1.0 * ranks, single * ranks});
      independent_.points.push_back({1.0 * ranks, tools::median(row.independent)});
      together_.points.push_back({1.0 * ranks, tools::median(row.together)});
    }
    say(scalingNoise(measured_));
  }

  void draw() const {
    writeSvg(options_.svg, {fmt::format("weft-train: {}, {} thread(s) per rank", options_.model,
                                        threadsOfScaling(options_)),
                            "ranks",
                            "sequences/s",
                            {together_, independent_, linear_}});
  }

  void writePage() const {
    const ScalingPage page{
        fmt::format("weft-train: {} on up to {} ranks", options_.model, measured_.back().ranks),
        fmt::format("{}, {}, {}", nowText(), tools::machineText(), tools::versionOf("weft-train")),
        what(),
        measured_,
        options_.settings,
        published_};
    tools::ReportFile(options_.report).write(htmlOf(page));
  }

  const Options& options_;
  const ScalingRanks& ranks_;
  const PublishedJob* published_;
  std::FILE* out_;
  int fewest_;  // ranks that have a model
  std::map<int, ScalingRounds> rows_;
  std::vector<ScalingRounds> measured_;  // the same, when all is measured
  Line together_{"one training", {}}, independent_{"without exchange", {}},
      linear_{"times the fewest ranks", {}};
};

}  // namespace

int threadsOfScaling(const Options& options) { return std::max(options.threads, 1); }

void printScalingTable(const Options& options, const ScalingRanks& ranks) {
  ScalingTable table(options, ranks);
  table.measure();
  if (ranks.speaks) table.print();
}

}  // namespace weft::train
