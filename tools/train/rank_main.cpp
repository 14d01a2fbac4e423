// SPDX-License-Identifier: Apache-2.0
// weft-train-rank: one rank of a training. weft-train starts it, with its own arguments.
#include <fmt/format.h>

#include "perf/common/program.h"
#include "tools/train/failure.h"
#include "tools/train/options.h"
#include "tools/train/run_rank.h"
#include "tools/train/termination.h"

namespace weft::train {
namespace {

int main(int argc, char** argv) {
  endWithRetryOnSigterm();
  try {
    return runRank(parseOptions(argc, argv));
  } catch (const Failure& failure) {
    fmt::print(stderr, "weft-train: {}\n", failure.what());
    return failure.code();
  }
}

}  // namespace
}  // namespace weft::train

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-train", [&]() { return weft::train::main(argc, argv); });
}
