// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "schedule/collective.h"
#include "sim/network.h"

namespace weft::sim {

// How long a call takes at least, whatever its schedule, because its bytes must pass the links. 0
// where these say nothing: latencies and cores do not count.
struct Bound {
  double cutNs = 0;  // what must leave and reach each rank and each node, and all of them together
  // All-gather and reduce-scatter: the rate at which every rank can get all others' blocks at once,
  // over all cuts (ForestColl, arXiv 2402.06787), by maximum flows. 0: too many ranks for that.
  double flowNs = 0;
  double ns() const { return cutNs > flowNs ? cutNs : flowNs; }
};

// `bytes`: of the larger buffer of a rank.
Bound boundOf(const Network& network, schedule::Collective collective, std::uint32_t root,
              double bytes);

}  // namespace weft::sim
