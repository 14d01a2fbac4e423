// SPDX-License-Identifier: Apache-2.0
// One shot: whole vectors travel in one step and are added where they are needed, in rank order, so
// that every rank gets the same bits. The best form for small messages: one latency.
#include "schedule/algorithms/generators.h"

namespace weft::schedule {
namespace {

// Waits for every other rank's vector in tmp(rank) and adds all of them to Out.
void addAll(Program& p, uint32_t n, uint32_t me) {
  for (const uint32_t from : before(me, n)) p.wait(from, tmp(from), {0});
  std::vector<Slot> addends;
  for (uint32_t r = 0; r < n; ++r) addends.push_back(r == me ? in(0) : tmp(r));
  p.reduce(out(0), addends, {0});
  p.apply(ApplyId::Finish, out(0), out(0), {0});
}

}  // namespace

Schedule oneShotAllReduce(uint32_t n) {
  Schedule s = emptySchedule(Collective::AllReduce, "one-shot", n, 1);
  s.tmpChunks = n;
  s.program = [n](uint32_t me) {
    Program p;
    for (const uint32_t to : after(me, n)) p.put(to, in(0), tmp(me), {0});
    addAll(p, n, me);
    return p;
  };
  return s;
}

Schedule oneShotReduce(uint32_t n, uint32_t root) {
  Schedule s = emptySchedule(Collective::Reduce, "one-shot", n, 1, root);
  s.tmpChunks = n;
  s.program = [n, root](uint32_t me) {
    Program p;
    if (me == root)
      addAll(p, n, me);
    else
      p.put(root, in(0), tmp(me), {0});
    return p;
  };
  return s;
}

}  // namespace weft::schedule
