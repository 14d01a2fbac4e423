// SPDX-License-Identifier: Apache-2.0
// Time of day against the steady clock, and what it costs to read it.
#pragma once

#include <string>

#include "tools/checks/host.h"

namespace weft::checks {

// The clocks at one moment, in seconds.
struct ClockReading {
  double real = 0;         // time of day
  double steady = 0;       // never steps, but is slewed with the time of day
  double raw = 0;          // neither
  double uncertainty = 0;  // how long it took to read the three
};
ClockReading readClocks();

// Did the time of day jump or run at another speed in between?
void compareClocks(const ClockReading& before, const ClockReading& after, HostReport& report);

double clockCost();  // of reading it once, in seconds
void checkClockCost(double seconds, const std::string& root, HostReport& report);

}  // namespace weft::checks
