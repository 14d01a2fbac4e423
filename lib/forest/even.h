// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "forest/units.h"

namespace weft::forest {

// With pairs that use a port alike: it gives each of them an equal part of its rate, so one that has more
// to carry than others is late. Ranks change partners, or get parts from others, as far as all parts still
// come to all ranks; where that leaves full ports as uneven as before, or much too uneven, nothing is
// changed. `graph`'s switch is gone from `units`; links carry `unitsPerRate` parts for each byte a
// nanosecond.
UnitGraph even(const Graph& graph, double unitsPerRate, const UnitGraph& units);

}  // namespace weft::forest
