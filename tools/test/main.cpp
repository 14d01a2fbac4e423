// SPDX-License-Identifier: Apache-2.0
// weft-test: times and checks collectives, in the manner of nccom-test.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "perf/common/exit_code.h"
#include "perf/common/launched.h"
#include "perf/common/local_ranks.h"
#include "perf/common/program.h"
#include "perf/weft-perf/life.h"
#include "tools/test/launch.h"
#include "tools/test/report.h"
#include "tools/test/run.h"

namespace weft::test {
namespace {

int liveAsOneRank(const TestOptions& options) {
  perf::Outcome outcome("weft-test");
  std::unique_ptr<perf::Reporter> reporter;
  perf::liveAsRank(
      outcome, reporter, [&]() { return joinTeam(options); },
      [&](perf::Team& team) { return runRank(options, team, reporter); });
  return outcome.exitCode();
}

// Says at once what would else be found after the ranks have started.
int startRanks(const TestOptions& options, char** argv) {
  try {
    Report tried(options);
  } catch (const tools::CannotWrite& error) {
    fmt::print(stderr, "weft-test: --report-to-json-file: {}\n", error.what());
    return tools::kExitCannotWrite;
  }
  return tools::runLocalRanks(options.ranks, argv);
}

}  // namespace

int main(int argc, char** argv) {
  std::variant<TestOptions, int> parsed = parseOptions(argc, argv);
  if (const int* exitCode = std::get_if<int>(&parsed)) return *exitCode;
  const TestOptions& options = std::get<TestOptions>(parsed);
  if (const std::string why = wantedLauncher(options); !why.empty()) {
    fmt::print(stderr, "weft-test: {}\n", why);
    return tools::kExitUsage;
  }
  return tools::isStartedByLauncher() ? liveAsOneRank(options) : startRanks(options, argv);
}

}  // namespace weft::test

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-test", [&]() { return weft::test::main(argc, argv); });
}
