// SPDX-License-Identifier: Apache-2.0
// weft-train: GPT, BERT or NeoX, data-parallel over weft, on the bytes of any text. This program
// starts ranks, or becomes one.
#include <fmt/format.h>

#include "tools/common/local_ranks.h"
#include "tools/train/batch_source.h"
#include "tools/train/become_rank.h"
#include "tools/train/corpus.h"
#include "tools/train/failure.h"
#include "tools/train/options.h"
#include "tools/train/scaling.h"

namespace weft::train {
namespace {

// Finds what is wrong with the data before N ranks do, so that it is said once.
void checkData(const Options& options) {
  const std::vector<uint8_t> text = readCorpus(options.data);
  makeBatchSource(options, text, 1);
}

int run(const Options& options, char** argv) {
  if (options.scaling.empty() && options.ranks == 0) becomeRank(argv);
  checkData(options);
  if (!options.scaling.empty()) return printScalingTable(options, argv);
  return tools::runLocalRanks(options.ranks, argv);
}

}  // namespace
}  // namespace weft::train

int main(int argc, char** argv) {
  try {
    return weft::train::run(weft::train::parseOptions(argc, argv), argv);
  } catch (const weft::train::Failure& failure) {
    fmt::print(stderr, "weft-train: {}\n", failure.what());
    return failure.code();
  }
}
