// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "forest/units.h"

namespace weft::forest {

// Of a port's time: one that is used less is no obstacle to anybody. What it carries gets equal parts of it,
// so there is one sooner than with a cable.
inline constexpr double kBusyPort = 0.7;

// Takes from links and ports, the busiest first, what all ranks can do without or get over others.
// `graph`'s switch is gone; links carry `unitsPerRate` parts for each byte a nanosecond. What is full sets
// the pace, and should not have to wait for what need not be.
void balance(const Graph& graph, double unitsPerRate, UnitGraph* units);

}  // namespace weft::forest
