// SPDX-License-Identifier: Apache-2.0
// Where a virtual machine's cores are. Its host moves them: now two of them are halves of one core, now
// cores of one cache, now of two, and everything that ranks exchange takes half or five times as long.
#pragma once

#include <cstddef>
#include <map>
#include <set>

#include "control.h"

namespace weft::peers {

// How long a line takes from the first of the page's cores to the second and back, in nanoseconds, as
// two threads of this process find it within a millisecond; 0 where there is one core, or a core is busy.
double roundTripNs(const Page& page);

// At both ends of a run.
struct Placement {
  double beforeNs = 0;
  double afterNs = 0;
};

// The runs that found the cores elsewhere than most others did, at either end.
std::set<std::size_t> elsewhere(const std::map<std::size_t, Placement>& runs);

}  // namespace weft::peers
