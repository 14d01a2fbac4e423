// SPDX-License-Identifier: Apache-2.0
// weft-train-rank: one rank of a training. weft-train starts it, with its own arguments.
#include <fmt/format.h>

#include "tools/train/failure.h"
#include "tools/train/options.h"
#include "tools/train/run_rank.h"

int main(int argc, char** argv) {
  try {
    return weft::train::runRank(weft::train::parseOptions(argc, argv));
  } catch (const weft::train::Failure& failure) {
    fmt::print(stderr, "weft-train: {}\n", failure.what());
    return failure.code();
  }
}
