// SPDX-License-Identifier: Apache-2.0
// weft-scale: as many ranks as asked, a process each, on one host or in the network namespaces of
// tests/rigs/hosts/net.sh, through the public API. Every rank notes what each step took and how it
// ended; this program prints a table and judges. tests/rigs/scale.sh runs it.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "perf/common/command_line.h"
#include "scale.h"

namespace weft::scale {
namespace {

// Two pidfds and some more for each other rank, in every process.
void raiseLimits() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

int judge(const Options& options, const Board& board) {
  int wrong = 0;
  std::printf("# %d ranks, %d a host, transport %s\n", options.ranks(), options.each,
              options.transport.c_str());
  std::printf("# %-22s %10s %12s %12s %12s %14s\n", "step", "wall ms", "CPU ms/rank", "most CPU ms",
              "PSS KiB/rank", "shmem KiB/rank");
  for (const Step& step : kSteps) wrong += printStep(options, board, step);
  return wrong;
}

int work(const Options& options) {
  raiseLimits();
  Board board(options.ranks());
  const IdPipe courier;
  const std::vector<pid_t> ranks = forkRanks(options, board, courier);
  const int lost = awaitAll(ranks);
  const int wrong = judge(options, board) + (lost > 1 ? lost - 1 : 0);  // one is killed by plan
  std::printf("# %s\n", wrong == 0 ? "passed" : "FAILED");
  return wrong == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Many ranks of weft: creation, calls, splits, a mismatch, a death");
  app.add_option("--hosts", options.hosts, "hosts; more than 1: namespaces of net.sh");
  app.add_option("--each", options.each, "ranks of a host");
  app.add_option("--net", options.net, "prefix of the namespaces");
  app.add_option("--transport", options.transport, "as WEFT_TRANSPORT");
  app.add_option("--timeout", options.timeoutMs, "ms, of creation and of each call");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 64;
  }
  return work(options);
}

}  // namespace
}  // namespace weft::scale

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-scale", [&] { return weft::scale::run(argc, argv); });
}
