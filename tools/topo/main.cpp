// SPDX-License-Identifier: Apache-2.0
// weft-topo: says what joins the ranks of a job, here or in a file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/status.h"
#include "base/text.h"
#include "tools/common/exit_code.h"
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

Status write(const std::string& path, const std::string& content) {
  if (path.empty()) return {};
  std::ofstream out(path, std::ios::trunc);
  out << content;
  out.flush();
  return out ? Status() : Status::error(Code::SystemError, text("cannot write ", path));
}

int complain(const Status& status, int exitCode) {
  fmt::print(stderr, "weft-topo: {}\n", status.text());
  return exitCode;
}

int run(const Options& options) {
  Fabric fabric;
  if (options.file.empty()) {
    const HostDescription host = describeHost();
    const std::uint32_t ranks = options.ranks ? options.ranks : usableCores(allowedCores());
    fabric = fabricOf(host, ranks);
    fmt::print("{}{}", describe(host), describe(optionalLibraries()));
  } else {
    const Status read = readFabric(options.file, &fabric);
    if (!read.ok()) return complain(read, tools::kExitMismatch);
    fmt::print("{}", describe(fabric));
  }
  for (const auto& [path, content] : {std::pair{options.exportTo, formatFabric(fabric)},
                                      std::pair{options.svg, drawSvg(fabric)}}) {
    const Status written = write(path, content);
    if (!written.ok()) return complain(written, tools::kExitCannotWrite);
  }
  return 0;
}

}  // namespace
}  // namespace weft::topo

int main(int argc, char** argv) {
  weft::topo::Options options;
  CLI::App app{"Prints, checks, exports and draws topologies: nodes, mesh links, rails."};
  app.footer(weft::topo::kFooter);
  app.add_option("--file", options.file, "a topology file (WEFT_TOPO_FILE), instead of this host");
  app.add_option("--ranks", options.ranks, "ranks of this host; default: the cores that are usable")
      ->check(CLI::Range(1u, weft::kMostRanksOfANode));
  app.add_option("--export", options.exportTo, "write it as a topology file");
  app.add_option("--svg", options.svg, "draw it");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : weft::tools::kExitUsage;
  }
  try {
    return weft::topo::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft-topo: {}\n", error.what());
    return 70;
  }
}
