// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/paper/paper.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <set>
#include <string>

#include "perf/common/command_line.h"
#include "perf/common/exit_code.h"
#include "tools/sim/exit.h"
#include "tools/sim/paper/paper_report.h"

namespace weft::simulator {
namespace {

struct PaperOptions {
  std::string name, json;
  Place place;
};

std::set<std::string> names() {
  std::set<std::string> all;
  for (const Paper& paper : papers()) all.insert(paper.name);
  return all;
}

std::optional<int> parsePaperOptions(int argc, char** argv, PaperOptions* options) {
  CLI::App app{"Published scaling tables beside what is predicted of them."};
  tools::addVersion(app, "weft-sim");
  app.add_option("--paper", options->name, "which")->required()->check(CLI::IsMember(names()));
  app.add_option(
      "--machine", options->place.machine,
      "a recorded machine (WEFT_TUNE_FILE) for weft's plans on cores; without, this one is "
      "measured");
  app.add_option("-J,--json", options->json,
                 "write everything to this file as JSON; - is standard output");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : tools::kExitUsage;
  }
  return {};
}

}  // namespace

int runPaper(int argc, char** argv) {
  PaperOptions options;
  if (const std::optional<int> code = parsePaperOptions(argc, argv, &options)) return *code;
  const std::optional<tools::ReportFile> json = fileFor(options.json);
  std::FILE* const out = tools::besides({options.json});
  const Paper& paper = *findPaper(options.name);
  fmt::print(out, "{}", headOf(paper));
  std::vector<TablePrediction> tables;
  std::string measured;
  for (const PaperTable& table : paper.tables) {
    const Status done =
        predictTable(paper, table, options.place, &tables.emplace_back(), &measured);
    if (!done.ok()) return tell(done);
    fmt::print(out, "{}", tableOf(paper, tables.back(), measured));
    std::fflush(out);
  }
  if (json) json->write(jsonOf(paper, tables, measured));
  return tools::kExitHealthy;
}

}  // namespace weft::simulator
