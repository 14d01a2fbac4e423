// SPDX-License-Identifier: Apache-2.0
#include "tools/test/run.h"

#include <fmt/format.h>

#include <cstdio>

#include "perf/common/exit_code.h"
#include "perf/weft-perf/run.h"
#include "tools/test/blame.h"
#include "tools/test/launch.h"
#include "tools/test/report.h"

namespace weft::test {
namespace {

// Whether rank 0 can report; a rank that it has told stops as rank 0 does.
bool makeReport(const TestOptions& options, perf::Team& team, std::unique_ptr<Report>& report) {
  int fails = 0;
  try {
    if (team.rank() == 0) report = std::make_unique<Report>(options);
  } catch (const tools::CannotWrite& error) {
    fmt::print(stderr, "weft-test: --report-to-json-file: {}\n", error.what());
    fails = 1;
  }
  return team.exchange(fails).front() == 0;
}

// The exit code of wrong data; rank 0 says who is to blame.
int judge(const perf::RunResult& result, perf::Team& team) {
  const std::string culprit = culpritOf(result.wrong, team.exchange(perf::rankInfo(team)));
  if (team.rank() == 0 && !culprit.empty()) {
    fmt::print(stderr, "weft-test: wrong data; to blame is {}; take it out of the job\n", culprit);
  }
  return culprit.empty() ? tools::kExitWrong : tools::kExitBad;
}

}  // namespace

int runRank(const TestOptions& options, perf::Team& team,
            std::unique_ptr<perf::Reporter>& reporter) {
  checkHosts(options, team);
  std::unique_ptr<Report> report;
  if (!makeReport(options, team, report)) return tools::kExitCannotWrite;
  Report* const speaker = report.get();
  reporter = std::move(report);
  perf::RunResult all;
  for (const Operation* operation : options.operations) {
    perf::Options measure = options.measure;
    measure.collective = &perf::parseCollective(operation->collective);
    if (std::string(operation->name) == "permute") measure.pairs = options.pairs;
    if (speaker != nullptr) speaker->operation(operation->name);
    const perf::RunResult result = perf::runRank(measure, team, speaker);
    all.wrong.insert(all.wrong.end(), result.wrong.begin(), result.wrong.end());
  }
  if (speaker != nullptr) speaker->finish();
  return all.right() ? tools::kExitHealthy : judge(all, team);
}

}  // namespace weft::test
