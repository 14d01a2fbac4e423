// SPDX-License-Identifier: Apache-2.0
// The scaling table: what more ranks bring on this machine, and what they lose to communication.
#pragma once

#include "tools/train/options.h"

namespace weft::train {

// In each of options.scalingRounds rounds, and for each number of ranks and for one, runs this
// program with that many local ranks, once as one training and once as so many independent ones, for
// options.scalingSeconds each, and prints medians and ranges
//
//   ranks | seq/s | seq/s/rank | efficiency | independent seq/s | comm efficiency | exposed ms
//
// efficiency is seq/s/rank over that of one rank in the same round, hence 100 % for one: all losses.
// Independent ranks share the machine but exchange nothing, so comm efficiency, seq/s over theirs, is
// the loss to communication alone, and the rest is lost to memory bandwidth, caches and clocks. Every
// rank of every row has the same number of threads (--threads, else 1). `argv` is the command line;
// all of it that is not the table's own is used. options.svg is the picture of seq/s over ranks,
// options.report the page; --json and --csv have the table. Returns the exit code.
int printScalingTable(const Options& options, char** argv);

}  // namespace weft::train
