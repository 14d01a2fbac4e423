// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tune/machine.h"

namespace weft {

struct Calibration {
  Machine machine;
  bool steady = false;  // nothing else disturbed it: worth keeping
};

// Measures this machine in a few milliseconds, with two threads on cores of their own for a moment.
// What cannot be measured (one core, no thread to be had) is estimated from the rest. Each number
// is that of the fastest of several tries, so other load changes little.
Calibration calibrate();

}  // namespace weft
