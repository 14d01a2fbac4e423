// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/table.h"

#include <fmt/format.h>

#include <sstream>

#include "perf/weft-perf/numbers.h"

namespace weft::perf {
namespace {

// The columns that -I and --percentiles add to each side, and their unit.
struct Extra {
  const char* title;
  const char* unit;
  double (*of)(const Statistics& microseconds);
};

std::vector<Extra> extraColumns(const Options& options) {
  std::vector<Extra> columns;
  if (options.perIteration) {
    columns.push_back({"i_min", "(us)", [](const Statistics& s) { return s.min; }});
    columns.push_back({"i_max", "(us)", [](const Statistics& s) { return s.max; }});
    columns.push_back({"i_p99", "(us)", [](const Statistics& s) { return s.p99; }});
    columns.push_back({"i_cv%", "(%)", [](const Statistics& s) { return s.variationPercent(); }});
  }
  if (options.percentiles) {
    columns.push_back({"p50", "(us)", [](const Statistics& s) { return s.p50; }});
    columns.push_back({"p99", "(us)", [](const Statistics& s) { return s.p99; }});
  }
  return columns;
}

// One side of a header line: the usual four columns and the extra ones.
std::string sideTitles(const char* time, const char* alg, const char* bus, const char* wrong,
                       const std::vector<const char*>& extras) {
  std::string text = fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", time, alg, bus, wrong);
  for (const char* extra : extras) text += fmt::format("  {:>7}", extra);
  return text;
}

// The columns left of the figures; '#' takes the place of the first two characters.
std::string leftTitles(const char* size, const char* count, const char* type, const char* op,
                       const char* root) {
  return fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", size, count, type, op, root);
}

std::string memoryParts(const Memory& memory) {
  return fmt::format("shared {} | plans {} | other {} | Total  {}", memoryText(memory.shared),
                     memoryText(memory.plans), memoryText(memory.other),
                     memoryText(memory.total()));
}

}  // namespace

void Table::head(const std::vector<RankInfo>& ranks, const std::string& machine) {
  int library = 0;
  static_cast<void>(weftGetVersion(&library));
  fmt::print(out_, "# weft-perf version {}.{}.{} weft-headers={} weft-library={}\n", WEFT_MAJOR,
             WEFT_MINOR, WEFT_PATCH, WEFT_VERSION_CODE, library);
  fmt::print(out_, "# Collective test starting: {}_perf\n", options_.collective->name);
  settings();
  fmt::print(out_, "# Using devices\n");
  for (const RankInfo& rank : ranks) {
    fmt::print(out_, "#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [host] {}\n",
               rank.rank, rank.group, rank.pid, rank.host, rank.device, rank.processor);
  }
  fmt::print(out_, "# Library memory per rank: {}\n", memoryParts(largestMemory(ranks)));
  comment("", machine);
  columns();
  std::fflush(out_);
}

void Table::comment(const char* indent, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) fmt::print(out_, "# {}{}\n", indent, line);
}

void Table::settings() {
  const bool multiplies = options_.factor > 1;
  fmt::print(
      out_,
      "# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} "
      "agg iters: {} validation: {} graph: 0 unalign: {}\n",
      options_.threads, options_.perThread, options_.minBytes, options_.maxBytes,
      multiplies ? options_.factor : options_.stepBytes, multiplies ? "factor" : "bytes",
      options_.warmup, options_.iterations, options_.aggregate, options_.checks, options_.unalign);
  if (options_.settles)
    fmt::print(out_, "# Further warmup calls, up to {} of each size in {} s: -w N makes N alone\n",
               Options::kMostSettling, Options::kSettlingSeconds);
  if (options_.parallelInit) {
    fmt::print(out_, "# Parallel Init Enabled: each rank joins in its own thread \n");
  }
  fmt::print(out_, "#\n");
}

void Table::columns() {
  const char* time = options_.cpuTime ? "cputime" : "time";
  std::vector<const char*> titles, units;
  for (const Extra& extra : extraColumns(options_)) {
    titles.push_back(extra.title);
    units.push_back(extra.unit);
  }
  const std::string left = leftTitles("", "", "", "", "");
  const std::string title = sideTitles(time, "algbw", "busbw", "#wrong", titles);
  const std::string unit = sideTitles("(us)", "(GB/s)", "(GB/s)", "", units);
  const int stampWidth = options_.timestamps ? 19 : 0;
  fmt::print(out_, "#\n");
  fmt::print(out_, "{}{}\n", left,
             titles.empty()
                 ? "           out-of-place                       in-place          "
                 : fmt::format("{:^{}}{:^{}}", "out-of-place (+ per-iteration)", title.size(),
                               "in-place (+ per-iteration)", title.size()));
  fmt::print(out_, "{}{}{} {:>{}}\n", leftTitles("size", "count", "type", "redop", "root"), title,
             title, options_.timestamps ? "timestamp" : "", stampWidth);
  fmt::print(out_, "{}{}{} {:>{}}\n", leftTitles("(B)", "(elements)", "", "", ""), unit, unit,
             options_.timestamps ? "%Y-%m-%d %H:%M:%S" : "", stampWidth);
}

void Table::row(const Row& row) {
  const Problem& problem = row.problem;
  fmt::print(out_, "{:12}  {:12}  {:>8}  {:>6}  {:6}{}{}", problem.bytes(), problem.count,
             problem.type.name, problem.op.name, problem.root, figures(problem, row.outOfPlace),
             figures(problem, row.inPlace));
  if (options_.timestamps) fmt::print(out_, "{:>21}", timestamp());
  fmt::print(out_, "\n");
  comment("  ", row.explanation);
  std::fflush(out_);
}

std::string Table::figures(const Problem& problem,
                           const std::optional<Measurement>& measurement) const {
  if (!measurement) {
    const std::vector<const char*> none(extraColumns(options_).size(), "N/A");
    return sideTitles("N/A", "N/A", "N/A", "N/A", none);
  }
  const Figures figures = figuresOf(problem, *measurement);
  const std::string wrong =
      measurement->wrong ? fmt::format("{:g}", static_cast<double>(*measurement->wrong)) : "N/A";
  return fmt::format("  {}  {}  {}  {:>6}{}", fitted(figures.microseconds, 7),
                     fitted(figures.algBw, 6), fitted(figures.busBw, 6), wrong,
                     extraFigures(*measurement));
}

std::string Table::extraFigures(const Measurement& measurement) const {
  if (measurement.iterations.empty()) return {};
  std::string text;
  const Statistics statistics =
      statisticsOf(measurement.microsecondsAfter(options_.skippedIterations));
  for (const Extra& extra : extraColumns(options_)) text += "  " + fitted(extra.of(statistics), 7);
  return text;
}

void Table::foot(const Summary& summary, const Memory& memory) {
  const char* mark = !summary.checksBusBw() ? "" : summary.fastEnough() ? "OK" : "FAILED";
  fmt::print(out_, "# {:<20} : {} {}\n", "Out of bounds values", summary.wrong,
             summary.wrong > 0 ? "FAILED" : "OK");
  fmt::print(out_, "# {:<20} : {:g} {}\n", "Avg bus bandwidth", summary.averageBusBw(), mark);
  fmt::print(out_, "#\n# Collective test concluded: {}_perf\n", options_.collective->name);
  if (options_.memoryReport) {
    fmt::print(out_, "# {:<20} : {}\n", "Library memory usage", memoryParts(memory));
  }
  fmt::print(out_, "#\n");
  std::fflush(out_);
}

}  // namespace weft::perf
