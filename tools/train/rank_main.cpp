// SPDX-License-Identifier: Apache-2.0
// weft-train-rank: one rank of a training, or with --ranks all of this host, forked once libtorch
// is loaded. weft-train starts it, with its own arguments.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "perf/common/local_ranks.h"
#include "perf/common/program.h"
#include "tools/train/failure.h"
#include "tools/train/options.h"
#include "tools/train/run_rank.h"
#include "tools/train/termination.h"

namespace weft::train {
namespace {

int main(int argc, char** argv);

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

int main(int argc, char** argv) {
  return tools::runProgram("weft-train", [&]() { return run(argc, argv); });
}

// At the end of this process what is registered after this call is done, as where launchers are told, and no
// more: libtorch, which was loaded before, would take its thousands of operators back, half of what four ranks
// of a short training take (1.05 core-seconds, and 0.53 without).
void leaveLibtorchAsItIs() {
  on_exit(
      [](int status, void*) {
        std::fflush(nullptr);
        _exit(status);
      },
      nullptr);
}

}  // namespace
}  // namespace weft::train

int main(int argc, char** argv) {
  weft::train::leaveLibtorchAsItIs();
  return weft::train::main(argc, argv);
}
