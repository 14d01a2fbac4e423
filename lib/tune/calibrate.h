// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tune/calibration.h"

namespace weft::tune {

// Measures this machine in a few milliseconds, with two threads on cores of their own for a moment.
// What cannot be measured (one core, no thread to be had) is 0: see estimated(). Each number
// is that of the fastest of several tries, so other load changes little.
Round calibrate();

}  // namespace weft::tune
