// SPDX-License-Identifier: Apache-2.0
// weft-doctor: says whether this host can run a job, and what is in the way, without a job.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>

#include "base/knobs.h"
#include "perf/common/command_line.h"
#include "perf/common/report_file.h"
#include "tools/checks/kinds.h"
#include "tools/checks/libraries.h"
#include "tools/doctor/emit.h"
#include "tools/doctor/environment.h"
#include "tools/doctor/launcher.h"
#include "tools/doctor/print.h"
#include "tools/doctor/probe.h"
#include "tools/doctor/transports.h"

namespace weft::doctor {
namespace {

constexpr const char* kFooter = R"(
Examples
  weft-doctor                        check this host, about 8 seconds
  weft-doctor --quick --json -       about 3 seconds, for machines
  weft-doctor --emit aws-batch       what makes AWS Batch act on exit codes
Exit codes: 0 healthy, 64 usage, 69 bad host, 70 a bug of weft's, 73 the report cannot be written,
78 this machine's settings. docs/operating.md explains every finding.)";

struct Options {
  std::string json, emit, probe;
  double seconds = checks::kHostSeconds;
  bool quick = false, kinds = false, isProbe = false;
  int ranks = 0;
};

// "[######      ] memory: patterns" on a terminal.
void showProgress(double done, std::string_view what) {
  constexpr int kWidth = 24;
  if (::isatty(STDERR_FILENO) == 0) return;
  if (done >= 1)
    fmt::print(stderr, "\r{:70}\r", "");
  else
    fmt::print(stderr, "\r[{:{}}] {:40}", std::string(static_cast<std::size_t>(done * kWidth), '#'),
               kWidth, what);
}

// A value that the library refuses fails what runs with it, too; once is enough.
void dropEchoes(std::vector<checks::Finding>& findings) {
  std::vector<checks::Finding> kept;
  for (checks::Finding& finding : findings) {
    const bool echo = std::ranges::any_of(kept, [&](const checks::Finding& earlier) {
      return finding.what.find(earlier.what) != std::string::npos;
    });
    if (!echo) kept.push_back(std::move(finding));
  }
  findings = std::move(kept);
}

checks::HostReport examine(const Options& options) {
  checks::HostReport surroundings;
  const Variables variables = variablesOfProcess();
  checkKnobs(surroundings);
  checkVariables(variables, surroundings);
  const Job job = checkLauncher(variables, surroundings);

  checks::HostOptions host;
  host.seconds = options.quick ? checks::kQuickHostSeconds : options.seconds;
  checks::HostReport report = checks::checkHost(
      host, [](double done, std::string_view what) { showProgress(done * 0.8, what); });
  showProgress(0.9, "transports");
  const Devices devices = devicesOf(checks::readNics());
  checkTransports(probeTransports(isSet(Knob::Transport)), devices, report);
  checkLibraries(checks::openLibraries(), devices, job, report);
  showProgress(1, "");

  std::ranges::move(surroundings.facts, std::back_inserter(report.facts));
  std::ranges::move(report.findings, std::back_inserter(surroundings.findings));
  dropEchoes(surroundings.findings);
  report.findings = std::move(surroundings.findings);
  sortByWeight(report.findings);
  return report;
}

int check(const Options& options) {
  std::optional<tools::ReportFile> file;
  if (!options.json.empty()) file.emplace(options.json);
  const checks::HostReport report = examine(options);
  std::fputs(toText(report).c_str(), tools::besides({options.json}));
  const std::string json =
      toJson(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  if (file) file->write(json + "\n");
  return checks::exitCodeOf(report.findings);
}

int run(const Options& options, char** argv) {
  if (options.isProbe) return options.ranks > 0 ? startProbe(argv) : runProbe(options.probe);
  if (options.kinds) {
    fmt::print("{}", checks::kindsAsMarkdown());
    return 0;
  }
  if (!options.emit.empty()) {
    fmt::print("{}", schedulerConfig(options.emit).value_or(""));
    return 0;
  }
  return check(options);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Checks this host before a job: processor, memory, limits, clock, network, settings."};
  app.footer(kFooter);
  tools::addVersion(app, "weft-doctor");
  app.add_flag("--quick", options.quick, "about 3 seconds");
  app.add_option("--seconds", options.seconds, "for what measures processor and memory")
      ->check(tools::within(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--json", options.json, "write the report as JSON; - is standard output");
  app.add_option("--emit", options.emit, "print what makes a scheduler act on exit codes")
      ->check(CLI::IsMember({"aws-batch", "slurm", "k8s"}));
  app.add_flag("--kinds", options.kinds, "print all kinds of findings, as in docs/operating.md");
  const auto* probe = app.add_option("--probe", options.probe)->group("");
  app.add_option("--ranks", options.ranks)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : tools::kExitUsage;
  }
  options.isProbe = probe->count() > 0;
  return run(options, argv);
}

}  // namespace weft::doctor

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-doctor", [&]() { return weft::doctor::main(argc, argv); });
}
