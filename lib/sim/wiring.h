// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "forest/graph.h"
#include "sim/network.h"

namespace weft::sim {

// A network as trees see it: its cables, memory that carries any amount, and a port for the ranks of a
// node that are on the same rails. Where ranks share only some of their rails, each has a port of its
// own, of a rate that loads no rail by more than its share.
forest::Graph graphOf(const Network& network);

}  // namespace weft::sim
