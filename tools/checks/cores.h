// SPDX-License-Identifier: Apache-2.0
// Cores that may really be used, and what took time from them while the checks ran.
#pragma once

#include <map>
#include <string>

#include "tools/checks/host.h"

namespace weft::checks {

// Counters that only rise.
struct CoreUse {
  double steady = 0;     // when it was read, in seconds
  double busy = 0;       // of all cores of the host, in ticks
  double stolen = 0;     // by the hypervisor, in ticks
  double throttled = 0;  // by the CPU quota, summed over cores, in seconds
  double hot = 0;        // slowed down by heat, summed over cores, in seconds
};
CoreUse readCoreUse(const std::string& root, double steady);

// How many cores, and of which kind. `usable` is lib/topology's count.
void checkCores(const std::string& root, unsigned usable, HostReport& report);
void compareCoreUse(const CoreUse& before, const CoreUse& after, unsigned usable,
                    HostReport& report);

}  // namespace weft::checks
