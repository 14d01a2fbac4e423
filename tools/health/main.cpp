// SPDX-License-Identifier: Apache-2.0
// weft-health: are these hosts, links and ranks fit for a job?
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <thread>
#include <variant>

#include "perf/common/exit_code.h"
#include "perf/common/local_ranks.h"
#include "perf/common/program.h"
#include "perf/common/report_file.h"
#include "tools/checks/kinds.h"
#include "tools/health/baseline.h"
#include "tools/health/heat_map.h"
#include "tools/health/options.h"
#include "tools/health/report.h"
#include "tools/health/run.h"

namespace weft::health {
namespace {

using checks::Finding;

constexpr std::chrono::milliseconds kTimeToSpeak{500};

Communicator join(const Options& options) {
  weftConfig_t config = defaultConfig();
  config.timeoutMs = options.stepMs();
  config.initTimeoutMs = static_cast<int>(options.joinSeconds * 1e3);
  config.commName = "weft-health";
  if (!options.transport.empty()) config.transport = options.transport.c_str();
  return Communicator::fromEnvironment(&config);
}

// One process of the run: what it found, told by rank 0, and by all if rank 0 may be the one that
// is lost.
class Rank {
 public:
  explicit Rank(const Options& options) : options_(options) {}

  int run() {
    const auto start = std::chrono::steady_clock::now();
    std::optional<Finding> lost = examineAll();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    evidence_.seconds = time.count();
    const int code = rank_ == 0 ? tell(lost) : endQuietly(lost);
    waitForTheReport(lost.has_value());
    return code;
  }

 private:
  // What ended the tests before their time, if anything did.
  std::optional<Finding> examineAll() {
    try {
      crew_.emplace(join(options_), options_.stepMs());
      rank_ = crew_->rank();
      Progress progress(rank_ == 0);
      examine(options_, *crew_, progress, &evidence_);
    } catch (const Error& error) {
      return findingOf(error.result(), error.info());
    } catch (const std::exception& error) {
      return findingOf(weftInternalError, {.message = error.what()});
    }
    return {};
  }

  // A launcher that sees a rank end with an error ends the others: not before rank 0 has spoken.
  void waitForTheReport(bool lost) {
    std::fflush(stdout);
    if (lost) {
      std::this_thread::sleep_for(kTimeToSpeak);
    } else {
      try {
        crew_->barrier();
      } catch (const Error&) {  // a rank died after all; everything has been said
      }
    }
  }

  int endQuietly(const std::optional<Finding>& lost) {
    if (!lost) return exitCodeOf(conclude(evidence_));
    fmt::print(stderr, "weft-health: {}", toText(*lost));
    const int code = exitCodeOf(std::span(&*lost, 1));
    // Ranks that have not met do not know who is the first: each writes the file, on its host.
    if (rank_ < 0 && options_.json != "-")
      save(options_.json, reportJson(evidence_, {*lost}, code).dump(1) + "\n");
    return orCannotWrite(code);
  }

  int tell(const std::optional<Finding>& lost) {
    std::vector<Finding> findings = conclude(evidence_);
    if (lost) findings.insert(findings.begin(), *lost);
    int code = lost ? exitCodeOf(std::span(&*lost, 1)) : exitCodeOf(findings);
    if (!options_.baseline.empty() && code == 0) compareWithBaseline(&findings);
    std::fputs(reportText(evidence_, findings).c_str(),
               tools::besides({options_.json, options_.svg, options_.baseline}));
    save(options_.json, reportJson(evidence_, findings, code).dump(1) + "\n");
    save(options_.svg, heatMapSvg(evidence_));
    return orCannotWrite(code);
  }

  void save(const std::string& path, const std::string& text) {
    if (path.empty()) return;
    try {
      tools::ReportFile(path).write(text);
    } catch (const tools::CannotWrite& error) {
      cannotWrite(error.what());
    }
  }

  void cannotWrite(const char* why) {
    fmt::print(stderr, "weft-health: {}\n", why);
    lostReport_ = true;
  }

  // What was found is worse than that it was not written.
  int orCannotWrite(int code) const {
    return code == 0 && lostReport_ ? tools::kExitCannotWrite : code;
  }

  void compareWithBaseline(std::vector<Finding>* findings) {
    try {
      Baseline baseline = Baseline::read(options_.baseline);
      const auto slower = baseline.compare(evidence_);
      findings->insert(findings->end(), slower.begin(), slower.end());
      if (slower.empty()) baseline.add(evidence_);
      baseline.write(options_.baseline);
    } catch (const std::exception& error) {
      cannotWrite(error.what());
    }
  }

  const Options& options_;
  std::optional<Crew> crew_;
  Evidence evidence_;
  int rank_ = -1;
  bool lostReport_ = false;
};

// Bad files are refused before the minute that would be lost.
int refuseFiles(const Options& options) {
  for (const std::string& path : {options.json, options.svg, options.baseline})
    if (!path.empty()) tools::ReportFile tried(path);
  if (options.baseline.empty()) return 0;
  try {
    static_cast<void>(Baseline::read(options.baseline));
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft-health: {}\n", error.what());
    return tools::kExitUsage;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = parseOptions(argc, argv);
  if (const int* exitCode = std::get_if<int>(&parsed)) return *exitCode;
  const Options& options = std::get<Options>(parsed);
  if (const int code = refuseFiles(options); code != 0) return code;
  if (options.localProcesses > 0) return tools::runLocalRanks(options.localProcesses, argv);
  // Forms that are tried are agreed on by what calls deliver, which a sick host may change.
  ::setenv("WEFT_ALGO", "model", 0);
  return Rank(options).run();
}

}  // namespace weft::health

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-health", [&]() { return weft::health::main(argc, argv); });
}
