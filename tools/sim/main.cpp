// SPDX-License-Identifier: Apache-2.0
// weft-sim: how long collectives, and training steps, take on machines that are not here.
#include <fmt/format.h>
#include <malloc.h>

#include <cstdio>
#include <limits>
#include <optional>
#include <string_view>

#include "perf/common/exit_code.h"
#include "perf/common/program.h"
#include "perf/weft-perf/numbers.h"
#include "perf/weft-perf/trace.h"
#include "tools/sim/choice.h"
#include "tools/sim/cluster.h"
#include "tools/sim/exit.h"
#include "tools/sim/goal.h"
#include "tools/sim/options.h"
#include "tools/sim/paper/paper.h"
#include "tools/sim/predict.h"
#include "tools/sim/report.h"
#include "tools/sim/step/step.h"

namespace weft::simulator {
namespace {

// With what was measured beside it.
std::string timelineOf(const std::vector<sim::Span>& spans, const std::string& measured) {
  std::vector<perf::TraceSpan> all;
  for (const sim::Span& span : spans)
    all.push_back({.rank = span.rank,
                   .lane = span.lane,
                   .op = span.op,
                   .segment = span.segment,
                   .bytes = span.bytes,
                   .peer = span.peer,
                   .beginUs = static_cast<double>(span.begin) / 1e6,
                   .endUs = static_cast<double>(span.end) / 1e6,
                   .isMessage = span.isMessage,
                   .name = span.name});
  return perf::traceOf(perf::TraceKind::Predicted, all, measured);
}

int run(const Options& options) {
  const std::optional<tools::ReportFile> json = fileFor(options.json),
                                         trace = fileFor(options.trace),
                                         goalFile = fileFor(options.goal);
  std::FILE* const out = tools::besides({options.json, options.trace, options.goal});
  const std::string measured = options.measured.empty() ? "" : perf::eventsOf(options.measured);
  if (measured.empty() && !options.measured.empty())
    return tell(Status::error(Code::InvalidArgument, options.measured,
                              " holds no events of a trace; fix: a file of weft-perf --trace"));
  Cluster cluster;
  if (const Status made = makeCluster(options, &cluster); !made.ok()) return tell(made);
  if (const Status read = readAlgorithm(options, &cluster); !read.ok()) return tell(read);
  fmt::print(out, "{}", headOf(options, cluster));
  const std::vector<std::size_t> sizes =
      perf::sizeSweep(options.minBytes, options.maxBytes, options.stepBytes, options.factor);
  std::vector<Row> rows;
  std::vector<Choice> choices;
  std::vector<sim::Span> spans;
  Goal goal;
  for (const std::size_t size : sizes) {
    std::function<void(const sim::Span&)> observe;
    if (trace && size == sizes.back())
      observe = [&](const sim::Span& span) { spans.push_back(span); };
    Goal* const wanted = goalFile && size == sizes.back() ? &goal : nullptr;
    if (const Status done = predict(options, cluster, size, observe, wanted, &rows.emplace_back());
        !done.ok())
      return tell(done);
    fmt::print(out, "{}", lineOf(options, cluster, rows.back()));
    if (options.ways) {
      const Status simulated = judgeChoice(options, cluster, rows.back(), &choices.emplace_back());
      if (!simulated.ok()) return tell(simulated);
      fmt::print(out, "{}", textOf(choices.back()));
    }
    std::fflush(out);
  }
  if (options.ways) fmt::print(out, "{}", regretOf(choices));
  if (json) json->write(jsonOf(options, cluster, rows, choices));
  if (trace) trace->write(timelineOf(spans, measured));
  if (goalFile) goalFile->write(options.goal.ends_with(".bin") ? binaryOf(goal) : textOf(goal));
  return tools::kExitHealthy;
}

// Plans of tens of thousands of ranks are made and dropped by turns: their memory is kept for the next ones,
// else a fifth of the time goes to pages that are given back and asked for again.
void keepMemory() {
  mallopt(M_MMAP_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

int main(int argc, char** argv) {
  keepMemory();
  if (argc > 1 && std::string_view(argv[1]) == "step") return runStep(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]).starts_with("--paper")) return runPaper(argc, argv);
  const std::variant<Options, int> parsed = parseOptions(argc, argv);
  if (const int* exitCode = std::get_if<int>(&parsed)) return *exitCode;
  return run(std::get<Options>(parsed));
}

}  // namespace
}  // namespace weft::simulator

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-sim", [&]() { return weft::simulator::main(argc, argv); });
}
