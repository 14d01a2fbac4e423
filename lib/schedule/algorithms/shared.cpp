// SPDX-License-Identifier: Apache-2.0
// Shared buffers: every rank does one n-th of the work on the buffers of all, without a copy in
// between (as NVLink and multicast kernels do on GPUs, and XHC over XPMEM on hosts).
#include "schedule/algorithms/generators.h"
#include "schedule/transforms.h"

namespace weft::schedule {
namespace {

// Adds block `me` of all inputs in rank order, each where it lies.
void addMine(Program& p, uint32_t n, uint32_t me, Slot to) {
  std::vector<Slot> addends;
  for (uint32_t r = 0; r < n; ++r) addends.push_back(r == me ? in(me) : inOf(r, me));
  p.reduce(to, addends, {me});
  p.apply(ApplyId::Finish, to, to, {me});
}

// Stores my out(block) to all others but `except`.
void storeToAll(Program& p, uint32_t n, uint32_t me, uint32_t except) {
  for (const uint32_t to : after(me, n))
    if (to != except) p.put(to, out(me), out(me), {me});
}

// Stores it to all, and waits for theirs.
void exchange(Program& p, uint32_t n, uint32_t me, uint32_t except) {
  storeToAll(p, n, me, except);
  for (const uint32_t from : before(me, n)) p.wait(from, out(from), {from});
}

}  // namespace

Schedule sharedAllReduce(uint32_t n) {
  Schedule s = emptySchedule(Collective::AllReduce, "shared", n, n);
  s.program = [n](uint32_t me) {
    Program p;
    addMine(p, n, me, out(me));
    exchange(p, n, me, n);
    return p;
  };
  return openBuffers(std::move(s));
}

Schedule sharedReduceScatter(uint32_t n) {
  Schedule s = emptySchedule(Collective::ReduceScatter, "shared", n, n);
  s.program = [n](uint32_t me) {
    Program p;
    addMine(p, n, me, out(0));
    return p;
  };
  return openBuffers(std::move(s));
}

Schedule sharedAllGather(uint32_t n) {
  Schedule s = emptySchedule(Collective::AllGather, "shared", n, n);
  s.program = [n](uint32_t me) {
    Program p;
    p.copy(in(0), out(me), {me});
    exchange(p, n, me, n);
    return p;
  };
  return openBuffers(std::move(s));
}

// Every rank takes its n-th of the root's vector to all others. The root itself, whose Out often is
// its In, copies that alone.
Schedule sharedBroadcast(uint32_t n, uint32_t root) {
  Schedule s = emptySchedule(Collective::Broadcast, "shared", n, n, root);
  s.program = [n, root](uint32_t me) {
    Program p;
    if (me == root) {
      p.copy(in(0), out(0), {0, n});
      storeToAll(p, n, me, n);
      return p;
    }
    p.copy(inOf(root, me), out(me), {me});
    exchange(p, n, me, root);
    return p;
  };
  return openBuffers(std::move(s));
}

// Who is not the root names its n-th of the sum, for as long as it takes to store it there.
Schedule sharedReduce(uint32_t n, uint32_t root) {
  Schedule s = emptySchedule(Collective::Reduce, "shared", n, n, root);
  s.tmpChunks = 1;
  s.program = [n, root](uint32_t me) {
    Program p;
    addMine(p, n, me, me == root ? out(me) : tmp(0));
    if (me != root) p.put(root, tmp(0), out(me), {me});
    for (const uint32_t from : before(me, n))
      if (me == root) p.wait(from, out(from), {from});
    return p;
  };
  return openBuffers(std::move(s));
}

Schedule sharedGather(uint32_t n, uint32_t root) {
  Schedule s = directGather(n, root);
  s.name = "gather shared";
  return openBuffers(std::move(s));
}

// Each rank takes its block, so that the root's core has no more to do than the others.
Schedule sharedScatter(uint32_t n, uint32_t root) {
  Schedule s = emptySchedule(Collective::Scatter, "shared", n, n, root);
  s.program = [root](uint32_t me) {
    Program p;
    p.copy(me == root ? in(me) : inOf(root, me), out(0), {me});
    return p;
  };
  return openBuffers(std::move(s));
}

Schedule sharedAllToAll(uint32_t n) {
  Schedule s = directAllToAll(n);
  s.name = "all-to-all shared";
  return openBuffers(std::move(s));
}

}  // namespace weft::schedule
