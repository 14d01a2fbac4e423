// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "forest/units.h"

namespace weft::forest {

// Puts links between ranks in the place of the switch, so that all ranks still get all parts: edge
// splitting (Frank; Jackson; Bang-Jensen, Frank and Jackson: it can be done wherever as much comes into
// the switch as leaves it). Pairs with a cable are never joined so, which may make it fail: false.
bool splitSwitch(const Graph& graph, UnitGraph* units);

}  // namespace weft::forest
