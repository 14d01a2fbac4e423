// SPDX-License-Identifier: Apache-2.0
// weft-train-rank: one rank of a training, or with --ranks all of this host, forked once libtorch
// is loaded. weft-train starts it, with its own arguments.
#include <fmt/format.h>
#include <unistd.h>

#include "perf/common/local_ranks.h"
#include "perf/common/program.h"
#include "tools/train/failure.h"
#include "tools/train/options.h"
#include "tools/train/run_rank.h"
#include "tools/train/termination.h"

namespace weft::train {
namespace {

[[noreturn]] int main(int argc, char** argv);

int run(int argc, char** argv) {
  endWithRetryOnSigterm();
  try {
    const Options options = parseOptions(argc, argv);
    if (options.ranks > 0) return tools::forkLocalRanks(options.ranks, argv, main);
    return runRank(options);
  } catch (const Failure& failure) {
    fmt::print(stderr, "weft-train: {}\n", failure.what());
    return failure.code();
  }
}

// All is written and closed by now. To end as programs do would have libtorch take its thousands of
// operators back: half of what four ranks of a short training took (1.05 core-seconds, now 0.53).
[[noreturn]] int main(int argc, char** argv) {
  _exit(tools::runProgram("weft-train", [&]() { return run(argc, argv); }));
}

}  // namespace
}  // namespace weft::train

int main(int argc, char** argv) { return weft::train::main(argc, argv); }
