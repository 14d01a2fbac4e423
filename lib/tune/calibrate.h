// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tune/calibration.h"
#include "tune/transfers.h"

namespace weft::tune {

// Measures this machine, in rounds of about ten milliseconds (twice that where there are several NUMA
// nodes), with two threads on cores of their own for a moment. What cannot be measured (one core, no thread or no memory to be had) is 0: see
// estimated().
class Calibrator {
 public:
  Round round();

 private:
  void measureFar(Machine* machine);

  Transfers transfers_, far_;
};

inline Round calibrate() { return Calibrator().round(); }

}  // namespace weft::tune
