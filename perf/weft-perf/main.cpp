// SPDX-License-Identifier: Apache-2.0
// weft-perf: times and checks collectives, in the manner of nccl-tests.
#include <cstdlib>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

#include "perf/common/exit_code.h"
#include "perf/common/local_ranks.h"
#include "perf/common/program.h"
#include "perf/weft-perf/full_report.h"
#include "perf/weft-perf/life.h"
#include "perf/weft-perf/options.h"
#include "perf/weft-perf/run.h"

namespace weft::perf {
namespace {

void liveOneOf(const Options& options, Communicator comm, std::unique_ptr<Reporter> reporter,
               Outcome& outcome) {
  liveAsRank(
      outcome, reporter, [&]() { return std::make_unique<Team>(std::move(comm)); },
      [&](Team& team) {
        const bool passed = runRank(options, team, reporter.get()).passed();
        return passed ? tools::kExitHealthy : tools::kExitWrong;
      });
}

int runRanks(const Options& options, int argc, char** argv) {
  Outcome outcome(options.program);
  attempt(outcome, nullptr, [&]() {
    std::vector<Communicator> comms = joinRanks(options);
    std::unique_ptr<Reporter> reporter;
    if (comms.front().rank() == 0) reporter = std::make_unique<FullReport>(options, argc, argv);
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < comms.size(); ++i) {
      others.emplace_back([&, i]() { liveOneOf(options, std::move(comms[i]), nullptr, outcome); });
    }
    liveOneOf(options, std::move(comms.front()), std::move(reporter), outcome);
    for (std::thread& thread : others) thread.join();
    return outcome.exitCode();
  });
  return outcome.exitCode();
}

}  // namespace

int main(int argc, char** argv) {
  std::variant<Options, int> parsed = parseOptions(argc, argv);
  if (const int* exitCode = std::get_if<int>(&parsed)) return *exitCode;
  const Options& options = std::get<Options>(parsed);
  if (!options.topology.empty()) ::setenv("WEFT_TOPO_FILE", options.topology.c_str(), 1);
  for (const std::string& path : {options.json, options.trace})
    if (!path.empty()) tools::ReportFile tried(path);
  if (options.localProcesses > 0) return tools::runLocalRanks(options.localProcesses, argv);
  return runRanks(options, argc, argv);
}

}  // namespace weft::perf

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-perf", [&]() { return weft::perf::main(argc, argv); });
}
