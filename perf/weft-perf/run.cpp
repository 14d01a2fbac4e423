// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>

#include "perf/common/report_file.h"
#include "perf/weft-perf/numbers.h"
#include "perf/weft-perf/trace.h"

namespace weft::perf {
namespace {

double requiredBusBw() {
  const char* text = std::getenv("NCCL_TESTS_MIN_BW");
  if (text == nullptr || *text == '\0') return -1;
  char* end = nullptr;
  const double wanted = std::strtod(text, &end);
  if (*end == '\0' && std::isfinite(wanted)) return wanted;
  throw Error(weftInvalidArgument,
              fmt::format("NCCL_TESTS_MIN_BW={} is no number; fix: give GB/s, as in 2.5", text));
}

class Run {
 public:
  Run(const Options& options, Team& team, Reporter* reporter)
      : options_(options), team_(team), reporter_(reporter), bench_(options, team) {
    summary_.requiredBusBw = requiredBusBw();
    const int last = team.group().size() - 1;
    if (options.root > last) {
      throw Error(weftInvalidArgument,
                  fmt::format("-r {}: there are only ranks 0 to {}", options.root, last));
    }
    sizes_ = sizeSweep(options.minBytes, options.maxBytes, options.stepBytes, options.factor);
    if (std::string_view(options.collective->name) == "barrier") sizes_ = {0};
  }

  RunResult execute() {
    const std::vector<RankInfo> ranks = team_.exchange(rankInfo(team_));
    if (reporter_ != nullptr) reporter_->head(ranks, environment());
    for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) runCycle();
    if (!options_.trace.empty()) writeTrace();
    const Memory memory = largestMemory(team_.exchange(rankInfo(team_)));
    if (reporter_ != nullptr) reporter_->foot(summary_, memory);
    return {team_.exchange(bench_.wrongHere()), summary_.fastEnough()};
  }

 private:
  // What the calls run on, for the head of the report.
  std::string environment() {
    const std::string edges = bench_.explainEdges();
    return (edges.empty() ? "" : "Rank 0 reaches\n" + edges + "\n") +
           (options_.explain ? bench_.explainMachine() : "");
  }

  std::vector<OpInfo> ops() const {
    return options_.collective->reduces ? options_.ops : std::vector<OpInfo>{noOp()};
  }

  std::vector<int> roots() {
    if (!options_.collective->rooted) return {-1};
    const int ranks = team_.group().size();
    if (options_.root != Options::kAllRoots) return {options_.root};
    std::vector<int> all;
    for (int root = 0; root < ranks; ++root) all.push_back(root);
    return all;
  }

  void runCycle() {
    for (const TypeInfo& type : options_.types) {
      for (const OpInfo& op : ops()) {
        if (!suits(op, type)) continue;
        for (int root : roots()) {
          for (std::size_t size : sizes_) runSize(bench_.problem(type, op, root, size));
        }
      }
    }
  }

  void runSize(const Problem& problem) {
    Row row{problem, {}, {}, {}};
    row.outOfPlace = measure(problem, Placement::OutOfPlace);
    if (options_.inPlace && problem.collective->inPlace)
      row.inPlace = measure(problem, Placement::InPlace);
    if (options_.explain) row.explanation = bench_.explain(problem);
    summary_.add(row);
    last_ = problem;
    if (reporter_ != nullptr) reporter_->row(row);
  }

  // Of the last size, type, operation and root.
  void writeTrace() {
    std::vector<weftOpSpan_t> mine = bench_.trace(*last_);
    const std::vector<std::size_t> made = team_.exchange(mine.size());
    mine.resize(std::ranges::max(made));
    const std::vector<weftOpSpan_t> all = team_.exchange(mine);
    if (reporter_ == nullptr) return;
    std::uint64_t origin = ~std::uint64_t{0};
    for (std::size_t rank = 0; rank < made.size(); ++rank)
      if (made[rank] > 0) origin = std::min(origin, all[rank * mine.size()].beginNs);
    std::vector<TraceSpan> spans;
    for (std::size_t rank = 0; rank < made.size(); ++rank) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * mine.size());
      std::ranges::copy(spansOf(static_cast<std::uint32_t>(rank),
                                {first, first + static_cast<std::ptrdiff_t>(made[rank])}, origin),
                        std::back_inserter(spans));
    }
    tools::ReportFile(options_.trace).write(traceOf(TraceKind::Measured, spans));
  }

  Measurement measure(const Problem& problem, Placement placement) {
    const auto phase = [&](const char* doing) {
      if (reporter_ == nullptr) return;
      reporter_->progress(
          fmt::format("{} {} {} {} {}: {}", problem.collective->name, problem.type.name,
                      problem.op.name, memoryText(problem.bytes()),
                      placement == Placement::InPlace ? "in place" : "out of place", doing));
    };
    return bench_.measure(problem, placement, phase);
  }

  const Options& options_;
  Team& team_;
  Reporter* reporter_;
  Bench bench_;
  std::vector<std::size_t> sizes_;
  Summary summary_;
  std::optional<Problem> last_;
};

}  // namespace

RunResult runRank(const Options& options, Team& team, Reporter* reporter) {
  return Run(options, team, reporter).execute();
}

}  // namespace weft::perf
