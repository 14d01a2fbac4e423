// SPDX-License-Identifier: Apache-2.0
// The scaling table: what more ranks bring, and what they lose to communication.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/train/options.h"

namespace weft::train {

struct Throughput {
  double sequencesPerSecond = 0;
  double exposedMs = 0;  // of a step, waiting for communication
};

// The ranks that a table is measured with.
struct ScalingRanks {
  std::vector<std::string> hosts;  // of each rank; the one of all of them where they share it
  std::string where;               // in words: "4 cores"
  std::string note;                // a line of comment below the head, or nothing
  bool speaks = true;              // prints and writes the table
  // Trains with the first so many ranks for options.scalingSeconds, as one training or as so many independent ones.
  // Where a launcher has started the ranks it is collective over all of them.
  std::function<Throughput(int ranks, bool independent)> measure;
};

// In each of options.scalingRounds rounds, and for each number of ranks and for one, measures one training and as many
// independent ones, and prints medians and ranges
//
//   ranks | seq/s | seq/s/rank | efficiency | independent seq/s | comm efficiency | exposed ms
//
// efficiency is seq/s/rank over that of one rank in the same round, hence 100 % for one: all losses.
// Independent ranks share the machine but exchange nothing, so comm efficiency, seq/s over theirs, is
// the loss to communication alone, and the rest is lost to memory bandwidth, caches and clocks.
// options.svg is the picture of seq/s over ranks, options.report the page; --json and --csv have the table, and the
// hosts of each row.
void printScalingTable(const Options& options, const ScalingRanks& ranks);

// Every rank of every row has the same number of threads: --threads, else 1.
int threadsOfScaling(const Options& options);

}  // namespace weft::train
