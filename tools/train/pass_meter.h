// SPDX-License-Identifier: Apache-2.0
// How long the passes of a stage are busy, by its runs of layers.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/train/pipeline_replay.h"

namespace weft::train {

class PassMeter {
 public:
  // Of so many runs.
  explicit PassMeter(int64_t runs) : sums_(static_cast<size_t>(runs)), means_(sums_.size()) {}

  void add(const Turn& turn, double seconds) {
    Sum& sum = of(sums_[static_cast<size_t>(turn.own)], turn.pass);
    sum.seconds += seconds;
    ++sum.count;
  }

  // Means of the passes since the last call; where there was none, of those before it.
  std::vector<PassSeconds> take() {
    for (size_t run = 0; run < sums_.size(); ++run) {
      takeMean(sums_[run].forward, means_[run].forward);
      takeMean(sums_[run].backward, means_[run].backward);
    }
    return means_;
  }

 private:
  struct Sum {
    double seconds = 0;
    int64_t count = 0;
  };
  struct Sums {
    Sum forward, backward;
  };

  static Sum& of(Sums& sums, Pass pass) {
    return pass == Pass::kForward ? sums.forward : sums.backward;
  }
  static void takeMean(Sum& sum, double& mean) {
    if (sum.count > 0) mean = sum.seconds / static_cast<double>(sum.count);
    sum = {};
  }

  std::vector<Sums> sums_;
  std::vector<PassSeconds> means_;
};

}  // namespace weft::train
