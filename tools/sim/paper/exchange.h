// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/groups.h"
#include "sim/network.h"
#include "tools/sim/paper/papers.h"

namespace weft::simulator {

// How long a stack's exchanges of so many elements take at least, one after the other, in all groups at
// once: as long as the busiest link, NIC or direction of a NIC has bytes to carry. What other libraries
// do is no plan of weft, and only their bytes are known.
double exchangeNs(const sim::Network& network, const sim::Groups& groups, double elements,
                  const PaperStack& stack);

}  // namespace weft::simulator
