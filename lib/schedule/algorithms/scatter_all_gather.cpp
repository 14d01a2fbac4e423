// SPDX-License-Identifier: Apache-2.0
// Large broadcast (van de Geijn): the root scatters the vector over the other ranks, which then
// gather it from each other on the mesh. The root sends the vector once, the others less than once.
#include <algorithm>

#include "schedule/algorithms/generators.h"
#include "schedule/embed.h"

namespace weft::schedule {

Schedule scatterAllGatherBroadcast(uint32_t n, uint32_t root) {
  const uint32_t others = n - 1, chunks = std::max(1u, others);
  Schedule s = emptySchedule(Collective::Broadcast, "scatter-all-gather", n, chunks, root);
  s.program = [=](uint32_t me) {
    const auto rankOf = [=](uint32_t other) { return (root + 1 + other) % n; };
    Program p;
    if (me == root) {
      for (uint32_t c = 0; c < others; ++c) p.put(rankOf(c), in(c), out(c), {c});
      p.copy(in(0), out(0), {0, chunks});
      return p;
    }
    const uint32_t mine = (me + n - root - 1) % n;
    p.wait(root, out(mine), {mine});
    embed(p, meshAllGather(others), mine, [=](uint32_t other) {
      return Place{.rank = rankOf(other), .in = {out(other)}, .out = {out(0)}};
    });
    return p;
  };
  return s;
}

}  // namespace weft::schedule
