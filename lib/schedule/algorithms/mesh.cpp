// SPDX-License-Identifier: Apache-2.0
// Full mesh: every block goes straight to its owner, n-1 parallel puts in one step. The owner adds
// all inputs at once in rank order.
#include "schedule/algorithms/generators.h"

namespace weft::schedule {

Schedule meshReduceScatter(uint32_t n) {
  Schedule s = emptySchedule(Collective::ReduceScatter, "mesh", n, n);
  s.tmpChunks = n;
  s.program = [n](uint32_t me) {
    Program p;
    for (const uint32_t owner : after(me, n)) p.put(owner, in(owner), tmp(me), {owner});
    for (const uint32_t from : before(me, n)) p.wait(from, tmp(from), {me});
    std::vector<Slot> addends;
    for (uint32_t r = 0; r < n; ++r) addends.push_back(r == me ? in(me) : tmp(r));
    p.reduce(out(0), addends, {me});
    p.apply(ApplyId::Finish, out(0), out(0), {me});
    return p;
  };
  return s;
}

Schedule meshAllGather(uint32_t n) {
  Schedule s = emptySchedule(Collective::AllGather, "mesh", n, n);
  s.program = [n](uint32_t me) {
    Program p;
    for (const uint32_t to : after(me, n)) p.put(to, in(0), out(me), {me});
    p.copy(in(0), out(me), {me});
    for (const uint32_t from : before(me, n)) p.wait(from, out(from), {from});
    return p;
  };
  return s;
}

Schedule meshAllReduce(uint32_t n) {
  return reduceScatterAllGather("mesh", meshReduceScatter(n), meshAllGather(n));
}

Schedule meshReduce(uint32_t n, uint32_t root) {
  return reduceScatterGather("mesh", meshReduceScatter(n), directGather(n, root));
}

}  // namespace weft::schedule
