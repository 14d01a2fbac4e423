// SPDX-License-Identifier: Apache-2.0
// weft-train: GPTs, BERTs and NeoX, data-parallel over weft, on the bytes of any text. This program
// starts ranks, or becomes one.
#include <fmt/format.h>

#include <algorithm>

#include "perf/common/launched.h"
#include "perf/common/program.h"
#include "tools/train/attention_memory.h"
#include "tools/train/become_rank.h"
#include "tools/train/failure.h"
#include "tools/train/files.h"
#include "tools/train/local_scaling.h"
#include "tools/train/options.h"
#include "tools/train/parts_of_model.h"
#include "tools/train/termination.h"
#include "tools/train/training_data.h"

namespace weft::train {
namespace {

// Finds what is wrong with the files before N ranks do, so that it is said once.
void checkInput(const Options& options) {
  checkFiles(options);
  const TrainingData data(options);
  const int64_t copies = std::max<int64_t>(options.ranks / anyPartOf(options).count(), 1);
  const int64_t samples = options.batch * options.accumulate * copies;
  data.training(static_cast<size_t>(samples));
  if (options.evalEvery > 0) data.validation(static_cast<size_t>(samples));
  checkAttentionFits(options, bytesOfThisHost());
}

// Copies of one training would write the same files.
void checkNobodyElseStartsRanks(const Options& options) {
  if (tools::launchedRanks() == 1 || options.ranks == 0) return;
  throw Failure(
      Exit::kUsage,
      fmt::format("--ranks starts ranks of its own, and a launcher has started several copies "
                  "of this program; leave it out (mpirun -n {} weft-train ...), or start "
                  "weft-train without a launcher",
                  std::max(options.ranks, 2)));
}

int run(const Options& given, char** argv) {
  endWithRetryOnSigterm();
  checkNobodyElseStartsRanks(given);
  const Options options = given.ranks > 0 ? forRanks(given, given.ranks) : given;
  const bool isTableOfThisHost = !options.scaling.empty() && tools::launchedRanks() == 1;
  if (options.ranks > 0 || isTableOfThisHost) checkInput(options);
  if (isTableOfThisHost) return scaleOnThisHost(options, argv);
  holdSigterm();  // loading libtorch takes a while
  becomeRank(argv);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parseOptions(argc, argv), argv);
  } catch (const Failure& failure) {
    fmt::print(stderr, "weft-train: {}\n", failure.what());
    return failure.code();
  }
}

}  // namespace weft::train

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-train", [&]() { return weft::train::main(argc, argv); });
}
