// SPDX-License-Identifier: Apache-2.0
// Direct: every block goes straight from where it is to where it belongs.
#include "schedule/algorithms/generators.h"

namespace weft::schedule {

Schedule directBroadcast(uint32_t n, uint32_t root) {
  Schedule s = emptySchedule(Collective::Broadcast, "direct", n, 1, root);
  s.program = [n, root](uint32_t me) {
    Program p;
    if (me == root) {
      for (const uint32_t to : after(me, n)) p.put(to, in(0), out(0), {0});
      p.copy(in(0), out(0), {0});
    } else {
      p.wait(root, out(0), {0});
    }
    return p;
  };
  return s;
}

Schedule directGather(uint32_t n, uint32_t root) {
  Schedule s = emptySchedule(Collective::Gather, "direct", n, n, root);
  s.program = [n, root](uint32_t me) {
    Program p;
    if (me == root) {
      p.copy(in(0), out(me), {me});
      for (const uint32_t from : after(me, n)) p.wait(from, out(from), {from});
    } else {
      p.put(root, in(0), out(me), {me});
    }
    return p;
  };
  return s;
}

Schedule directScatter(uint32_t n, uint32_t root) {
  Schedule s = emptySchedule(Collective::Scatter, "direct", n, n, root);
  s.program = [n, root](uint32_t me) {
    Program p;
    if (me == root) {
      for (const uint32_t to : after(me, n)) p.put(to, in(to), out(0), {to});
      p.copy(in(me), out(0), {me});
    } else {
      p.wait(root, out(0), {me});
    }
    return p;
  };
  return s;
}

Schedule directAllToAll(uint32_t n) {
  Schedule s = emptySchedule(Collective::AllToAll, "direct", n, n);
  s.program = [n](uint32_t me) {
    Program p;
    for (const uint32_t to : after(me, n)) p.put(to, in(to), out(me), {to});
    p.copy(in(me), out(me), {me});
    for (const uint32_t from : before(me, n)) p.wait(from, out(from), {me});
    return p;
  };
  return s;
}

Schedule directBarrier(uint32_t n) {
  Schedule s = emptySchedule(Collective::Barrier, "direct", n, 1);
  s.signals = n;
  s.program = [n](uint32_t me) {
    Program p;
    for (const uint32_t to : after(me, n)) p.signal(to, me);
    for (const uint32_t from : before(me, n)) p.waitSignal(from, from);
    return p;
  };
  return s;
}

}  // namespace weft::schedule
