// SPDX-License-Identifier: Apache-2.0
// Shared buffers, of which each rank reads what it lacks and stores nothing to others: a line that a
// core stores to must be its own first, which costs more than to read it where another has it.
#include "schedule/algorithms/generators.h"
#include "schedule/transforms.h"

namespace weft::schedule {
namespace {

Schedule opened(Collective collective, uint32_t n, uint32_t root,
                std::function<Program(uint32_t)> program) {
  Schedule s = emptySchedule(collective, "shared-pull", n, n, root);
  s.program = std::move(program);
  return openBuffers(std::move(s));
}

// Block `block` of each rank's In.
void takeFromAll(Program& p, uint32_t n, uint32_t me, uint32_t block) {
  p.copy(in(block), out(me), {me});
  for (const uint32_t from : before(me, n)) p.copy(inOf(from, block), out(from), {from});
}

// The sum of all inputs, whole.
void addWhole(Program& p, uint32_t n, uint32_t me) {
  std::vector<Slot> addends;
  for (uint32_t r = 0; r < n; ++r) addends.push_back(r == me ? in(0) : inOf(r, 0));
  p.reduce(out(0), addends, {0, n});
  p.apply(ApplyId::Finish, out(0), out(0), {0, n});
}

}  // namespace

Schedule sharedPullAllGather(uint32_t n) {
  return opened(Collective::AllGather, n, 0, [n](uint32_t me) {
    Program p;
    takeFromAll(p, n, me, 0);
    return p;
  });
}

Schedule sharedPullAllToAll(uint32_t n) {
  return opened(Collective::AllToAll, n, 0, [n](uint32_t me) {
    Program p;
    takeFromAll(p, n, me, me);
    return p;
  });
}

Schedule sharedPullBroadcast(uint32_t n, uint32_t root) {
  return opened(Collective::Broadcast, n, root, [n, root](uint32_t me) {
    Program p;
    p.copy(me == root ? in(0) : inOf(root, 0), out(0), {0, n});
    return p;
  });
}

Schedule sharedPullReduce(uint32_t n, uint32_t root) {
  return opened(Collective::Reduce, n, root, [n, root](uint32_t me) {
    Program p;
    if (me == root) addWhole(p, n, me);
    return p;
  });
}

Schedule sharedPullGather(uint32_t n, uint32_t root) {
  return opened(Collective::Gather, n, root, [n, root](uint32_t me) {
    Program p;
    if (me == root) takeFromAll(p, n, me, 0);
    return p;
  });
}

}  // namespace weft::schedule
