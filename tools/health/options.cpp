// SPDX-License-Identifier: Apache-2.0
#include "tools/health/options.h"

#include <CLI/CLI.hpp>

#include "perf/common/command_line.h"
#include "perf/common/exit_code.h"

namespace weft::health {
namespace {

constexpr const char* kFooter = R"(
Examples
  weft-health --ranks 8              this host, with eight processes
  mpirun -n 8 weft-health --quick    the hosts of a job, in ten seconds; srun and torchrun as well
  weft-health --ranks 2 --json - --svg pairs.svg --baseline /var/lib/weft/health.json

The verdict comes first, worst first, each finding with what to do. docs/operating.md explains all
findings. Exit codes: 0 healthy (warnings may have been printed), 69 a host, link or rank was found
bad and named: go elsewhere, 75 a peer or host was lost: try again, 64 usage, 65 ranks disagree,
73 a report could not be written, 78 configuration, 77 authentication: do not retry, 70 a bug of
weft's.
)";

void declare(CLI::App& app, Options& options) {
  app.add_option("--ranks", options.localProcesses, "start N processes on this host")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--quick", options.quick, "ten seconds instead of sixty");
  app.add_option("--time", options.seconds, "seconds that the whole may take")
      ->check(tools::within(3.0, 3600.0));
  app.add_option("--step-timeout", options.stepSeconds,
                 "seconds that a rank may be late by before it counts as lost (10, quick 5)")
      ->check(tools::within(0.5, 600.0));
  app.add_option("--join-timeout", options.joinSeconds, "seconds for all ranks to join (30)")
      ->check(tools::within(0.5, 3600.0));
  app.add_option("--transport", options.transport, "as WEFT_TRANSPORT: shm, verbs, ofi, ...");
  app.add_flag("!--no-host", options.hostChecks, "leave out the checks of the hosts themselves");
  app.add_option("--seed", options.seed, "of the random data; by default another one each time")
      ->check(tools::natural(0x1p64));
  app.add_option("--json", options.json, "write all that was found as JSON; - is standard output");
  app.add_option("--svg", options.svg, "draw the bandwidth and latency of all pairs");
  app.add_option("--baseline", options.baseline,
                 "compare with earlier runs in this file, and add this one if it is healthy");
}

}  // namespace

std::variant<Options, int> parseOptions(int argc, char** argv) {
  Options options;
  CLI::App app("weft-health: are these hosts, links and ranks fit for a job?", "weft-health");
  app.footer(kFooter);
  tools::addVersion(app, "weft-health");
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : tools::kExitUsage;
  }
  return options;
}

}  // namespace weft::health
