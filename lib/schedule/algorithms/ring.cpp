// SPDX-License-Identifier: Apache-2.0
// Ring: n-1 steps, each to the next neighbour only. The partial sum of a block starts at the rank
// after its owner and comes home last.
#include "schedule/algorithms/generators.h"

namespace weft::schedule {

Schedule ringReduceScatter(uint32_t n) {
  Schedule s = emptySchedule(Collective::ReduceScatter, "ring", n, n);
  s.tmpChunks = n - 1;
  s.program = [n](uint32_t me) {
    Program p;
    const uint32_t next = (me + 1) % n, last = (me + n - 1) % n;
    if (n > 1) p.put(next, in(last), tmp(0), {last});
    for (uint32_t step = 0; step + 1 < n; ++step) {
      const uint32_t block = (me + 2 * n - 2 - step) % n;
      const bool home = block == me;
      const Slot sum = home ? out(0) : tmp(step);
      p.wait(last, tmp(step), {block});
      p.reduce(sum, {tmp(step), in(block)}, {block});
      if (!home) p.put(next, sum, tmp(step + 1), {block});
    }
    if (n == 1) p.copy(in(0), out(0), {0});
    p.apply(ApplyId::Finish, out(0), out(0), {me});
    return p;
  };
  return s;
}

Schedule ringAllGather(uint32_t n) {
  Schedule s = emptySchedule(Collective::AllGather, "ring", n, n);
  s.program = [n](uint32_t me) {
    Program p;
    const uint32_t next = (me + 1) % n, last = (me + n - 1) % n;
    if (n > 1) p.put(next, in(0), out(me), {me});
    p.copy(in(0), out(me), {me});
    for (const uint32_t block : before(me, n)) {
      p.wait(last, out(block), {block});
      if (block != next) p.put(next, out(block), out(block), {block});
    }
    return p;
  };
  return s;
}

Schedule ringAllReduce(uint32_t n) {
  return reduceScatterAllGather("ring", ringReduceScatter(n), ringAllGather(n));
}

}  // namespace weft::schedule
