// SPDX-License-Identifier: Apache-2.0
// How fast a rank makes its steps.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/train/pass_meter.h"
#include "tools/train/trainer.h"

namespace weft::train {

// Medians of one rank's steps, without its first ones, which are slower.
struct Pace {
  double stepSeconds = 0;
  double exposedSeconds = 0;
  double wireBytes = 0;                  // a parameter
  double stageWaitSeconds = 0;           // for other stages of a pipeline
  std::vector<PassSeconds> passes = {};  // by run of layers of the rank's stage
};

class PaceMeter {
 public:
  void add(const StepReport& report);
  Pace pace() const;
  bool empty() const { return steps_.empty(); }
  size_t steps() const { return steps_.size(); }

 private:
  std::vector<double> steps_;
  std::vector<double> exposed_;
  std::vector<double> wire_;
  std::vector<double> stageWaits_;
  std::vector<std::vector<PassSeconds>> passes_;  // by run of layers
};

}  // namespace weft::train
