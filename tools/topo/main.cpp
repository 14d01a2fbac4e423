// SPDX-License-Identifier: Apache-2.0
// weft-topo: says what joins the ranks of a job, here or in a file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "base/status.h"
#include "perf/common/command_line.h"
#include "perf/common/exit_code.h"
#include "perf/common/report_file.h"
#include "tools/topo/format.h"
#include "tools/topo/here.h"
#include "tools/topo/print.h"
#include "tools/topo/svg.h"
#include "topology/cores.h"
#include "topology/fabric_file.h"

namespace weft::topo {
namespace {

constexpr const char* kFooter = R"(
Examples
  weft-topo                                   what this host has
  weft-topo --export here.topo                the same as a topology file, to be completed
  weft-topo --file dl1.24xlarge.topo --svg dl1.svg
Exit codes: 0 good, 64 usage, 65 the file is bad, 73 an output cannot be written.)";

struct Options {
  std::string file, exportTo, svg;
  std::uint32_t ranks = 0;
};

void write(const Options& options, const std::string& lines, const std::string& picture) {
  if (!options.exportTo.empty()) tools::ReportFile(options.exportTo).write(lines);
  if (!options.svg.empty()) tools::ReportFile(options.svg).write(picture);
}

int showHost(const Options& options, std::FILE* out) {
  const topology::HostDescription host = topology::describeHost();
  const cpu_set_t cores = topology::allowedCores();
  const std::uint32_t ranks = options.ranks ? options.ranks : topology::usableCores(cores);
  fmt::print(out, "{}{}", describe(host), describe(optionalLibraries()));
  write(options, exportOf(host, ranks), drawSvg(host, cores));
  return tools::kExitHealthy;
}

int showFile(const Options& options, std::FILE* out) {
  topology::Fabric fabric;
  const Status read = topology::readFabric(options.file, &fabric);
  if (!read.ok()) {
    fmt::print(stderr, "weft-topo: {}\n", read.text());
    return tools::kExitMismatch;
  }
  fmt::print(out, "{}", describe(fabric));
  write(options, formatFabric(fabric), drawSvg(fabric));
  return tools::kExitHealthy;
}

int run(const Options& options) {
  std::FILE* const out = tools::besides({options.exportTo, options.svg});
  return options.file.empty() ? showHost(options, out) : showFile(options, out);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Prints, checks, exports and draws topologies: nodes, mesh links, rails."};
  app.footer(kFooter);
  tools::addVersion(app, "weft-topo");
  app.add_option("--file", options.file, "a topology file (WEFT_TOPO_FILE), instead of this host");
  app.add_option("--ranks", options.ranks, "ranks of this host; default: the cores that are usable")
      ->check(CLI::Range(1u, topology::kMostRanksOfANode));
  app.add_option("--export", options.exportTo, "write it as a topology file; - is standard output");
  app.add_option("--svg", options.svg, "draw it; - is standard output");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : tools::kExitUsage;
  }
  return run(options);
}

}  // namespace weft::topo

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-topo", [&]() { return weft::topo::main(argc, argv); });
}
