// SPDX-License-Identifier: Apache-2.0
#include "tools/train/scaling.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "perf/common/local_ranks.h"
#include "perf/common/machine.h"
#include "perf/common/median.h"
#include "perf/common/program.h"
#include "perf/common/report_file.h"
#include "tools/train/failure.h"
#include "tools/train/reports/plot.h"
#include "tools/train/reports/scaling_page.h"
#include "tools/train/reports/scaling_table.h"
#include "tools/train/reports/words.h"

namespace weft::train {
namespace {

// Those of the table; the runs that it measures have the others.
constexpr std::array<std::string_view, 5> kOwnOptions{"--scaling", "--svg", "--report", "--json",
                                                      "--csv"};

struct Figures {
  double sequencesPerSecond;
  double exposedMs;
};

// A file without a name for the measured run to write its summary to; it inherits the descriptor.
class ResultFile {
 public:
  ResultFile() : descriptor_(memfd_create("weft-train-summary", 0)) {
    if (descriptor_ < 0) {
      throw Failure(Exit::kConfiguration, fmt::format("memfd_create: {}", std::strerror(errno)));
    }
  }
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;
  ~ResultFile() { close(descriptor_); }

  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }
  std::string content() const {
    std::string text(size_t{1} << 20, '\0');
    const ssize_t length = pread(descriptor_, text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(std::max<ssize_t>(length, 0)));
    return text;
  }

 private:
  int descriptor_;
};

class ScalingTable {
 public:
  ScalingTable(const Options& options, char** argv)
      : options_(options),
        published_(publishedJob(options.recipe)),
        out_(tools::besides({options.svg, options.report, options.json, options.csv})),
        threads_(std::max(options.threads, 1)),
        fewest_(fewestRanks(options)) {
    for (char** word = argv; *word != nullptr; ++word) {
      const std::string text = *word, name = text.substr(0, text.find('='));
      const bool isOurs = std::ranges::find(kOwnOptions, name) != kOwnOptions.end();
      if (!isOurs) arguments_.push_back(text);
      if (isOurs && name == text && word[1] != nullptr) ++word;
    }
  }

  void print() {
    printHead();
    std::set<int> counts(options_.scaling.begin(), options_.scaling.end());
    counts.insert(fewest_);
    for (const int ranks : counts) rows_[ranks].ranks = ranks;
    for (int64_t round = 0; round < options_.scalingRounds; ++round) measureRound(round);
    printTable();
    if (!options_.svg.empty()) draw();
    if (!options_.report.empty()) writePage();
    if (!options_.json.empty())
      tools::ReportFile(options_.json).write(scalingJson(measured_, published_));
    if (!options_.csv.empty())
      tools::ReportFile(options_.csv).write(scalingCsv(measured_, published_));
  }

 private:
  std::string what() const {
    return fmt::format(
        "{} sequences of {} tokens per {} and step (weak scaling), {} thread(s) per rank in "
        "every "
        "row, {} cores, medians of {} rounds of {} s",
        options_.batch * options_.accumulate, options_.length,
        fewest_ == 1 ? "rank" : fmt::format("{} ranks", fewest_), threads_,
        std::thread::hardware_concurrency(), options_.scalingRounds, options_.scalingSeconds);
  }

  void printHead() const {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    fmt::print(out_, "# weft-train scaling: {}\n", what());
    const int most = *std::max_element(options_.scaling.begin(), options_.scaling.end());
    if (most * threads_ > cores) {
      fmt::print(out_,
                 "# {} ranks need {} cores and there are {}: rows beyond {} ranks share cores\n",
                 most, most * threads_, cores, cores / threads_);
    }
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
      const Figures together = measure(ranks, false);
      const Figures independent = ranks == fewest_ ? together : measure(ranks, true);
      row.together.push_back(together.sequencesPerSecond);
      row.independent.push_back(independent.sequencesPerSecond);
      row.exposedMs.push_back(together.exposedMs);
      said +=
          fmt::format("{} {}: {:.2f}", said.empty() ? "" : ",", ranks, together.sequencesPerSecond);
    }
    fmt::print(out_, "# round {} of {}, seq/s by ranks:{}\n", round + 1, options_.scalingRounds,
               said);
    std::fflush(out_);
  }

  void printTable() {
    fmt::print(out_, "{}", scalingHead(published_));
    const ScalingRounds& fewest = rows_.at(fewest_);
    const double single = tools::median(fewest.together) / fewest_;
    for (const auto& [ranks, row] : rows_) measured_.push_back(row);
    for (const int ranks : options_.scaling) {
      const ScalingRounds& row = rows_.at(ranks);
      fmt::print(out_, "{}", scalingRow(row, fewest, published_));
      linear_.points.push_back({1.0 * ranks, single * ranks});
      independent_.points.push_back({1.0 * ranks, tools::median(row.independent)});
      together_.points.push_back({1.0 * ranks, tools::median(row.together)});
    }
    fmt::print(out_, "{}", scalingNoise(measured_));
    std::fflush(out_);
  }

  void draw() const {
    writeSvg(options_.svg,
             {fmt::format("weft-train: {}, {} thread(s) per rank", options_.model, threads_),
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

  Figures measure(int ranks, bool independent) const {
    const ResultFile result;
    std::vector<std::string> words = arguments_;
    for (const std::string& word :
         {std::string("--quiet"), "--json=" + result.path(), fmt::format("--threads={}", threads_),
          fmt::format("--seconds={}", options_.scalingSeconds), std::string("--steps=1000000")}) {
      words.push_back(word);
    }
    if (independent) words.emplace_back("--independent");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int code = tools::runLocalRanks(ranks, argv.data());
    if (code != 0) {
      throw Failure(static_cast<Exit>(code),
                    fmt::format("no scaling table: the run with {} ranks failed", ranks));
    }
    const auto json = nlohmann::json::parse(result.content());
    return {json.at("sequences_per_s"), json.at("exposed_ms")};
  }

  const Options& options_;
  const PublishedJob* published_;
  std::FILE* out_;
  int threads_;
  int fewest_;  // ranks that have a model
  std::vector<std::string> arguments_;
  std::map<int, ScalingRounds> rows_;
  std::vector<ScalingRounds> measured_;  // the same, when all is measured
  Line together_{"one training", {}}, independent_{"without exchange", {}},
      linear_{"times the fewest ranks", {}};
};

}  // namespace

int printScalingTable(const Options& options, char** argv) {
  ScalingTable(options, argv).print();
  return 0;
}

}  // namespace weft::train
