// SPDX-License-Identifier: Apache-2.0
// What a rank has and does at a number of ranks, for docs/scale.md.
#include <fmt/format.h>

#include "perf/common/command_line.h"
#include "perf/common/exit_code.h"
#include "perf/limits/limits.h"
#include "tune/calibrate.h"

namespace {

int run(int argc, char** argv) {
  std::vector<std::uint32_t> ranks{8, 64, 128, 256, 1024, 4096, 65536};
  std::uint32_t localRanks = 8, numaNodes = 1;
  CLI::App app("What a rank has and does at a number of ranks, without those ranks");
  app.add_option("--ranks", ranks, "how many, of all hosts")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--host", localRanks, "how many of a host")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--numa", numaNodes, "NUMA nodes of a host")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  bool queuePairs = false;
  app.add_flag(
      "--queue-pairs", queuePairs,
      "instead, the queue pairs that a rank has over verbs, for each rail, after one call of "
      "each collective: of 8 bytes a rank, and of 64 MiB in all");
  weft::tools::addVersion(app, "weft-limits");
  if (const auto code = weft::tools::endByWords(app, argc, argv)) return *code;
  const weft::tune::Machine machine = weft::tune::estimated(weft::tune::calibrate().machine);
  std::vector<weft::tools::Limits> rows;
  for (std::uint32_t& n : ranks) {
    const std::uint32_t host = std::min(n, localRanks);
    n = n / host * host;
    if (!queuePairs) rows.push_back(weft::tools::limitsOf(n, host, machine, numaNodes));
  }
  fmt::print("{}", queuePairs ? weft::tools::queuePairsOf(ranks, localRanks, machine)
                              : weft::tools::tableOf(rows));
  return weft::tools::kExitHealthy;
}

}  // namespace

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-limits", [&]() { return run(argc, argv); });
}
