// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tools/sim/options.h"
#include "tools/sim/paper/papers.h"

namespace weft::simulator {

// What is predicted of a row: with each stack of the paper, and with weft.
struct PaperPrediction {
  struct OfStack {
    double exchangeNs = 0;
    double sequencesPerSecond = 0;
    double efficiency = 0;
  };
  struct OfPlan {
    std::string shard;  // degrees, as --shard has them
    double bucketMb = 0;
    double stepNs = 0, exposedNs = 0;
    double efficiency = 0;
    std::vector<std::string> algorithms;
    bool isThere() const { return bucketMb > 0; }
  };
  PaperRow row;
  double published = 0;  // efficiency
  std::vector<OfStack> stacks;
  OfPlan onCores,
      onCards;  // weft's best plan, where cores copy and add, and where that takes no time
};

struct TablePrediction {
  const PaperTable* table = nullptr;
  std::vector<double> slotNs;  // by stack, from the first row
  std::vector<PaperPrediction> rows;
  // The largest difference of a held-out row, in points of efficiency, with a stack.
  double worstPoints(std::size_t stack) const;
};

// `place`: --machine, and what weft's ranks are to be simulated with.
Status predictTable(const Paper& paper, const PaperTable& table, const Place& place,
                    TablePrediction* out, std::string* measured);

}  // namespace weft::simulator
