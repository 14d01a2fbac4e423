// SPDX-License-Identifier: Apache-2.0
// One shot: whole vectors travel in one step and are added where they are needed, in rank order, so
// that every rank gets the same bits. The best form for small messages: one latency.
#include "schedule/generators.h"

namespace weft {
namespace {

// Waits for every other rank's vector in tmp(rank) and adds all of them to Out.
void addAll(Program& p, uint32_t n, uint32_t me) {
  for (uint32_t k = 1; k < n; ++k) p.wait(tmp((me + n - k) % n), {0});
  std::vector<Slot> addends;
  for (uint32_t r = 0; r < n; ++r) addends.push_back(r == me ? in(0) : tmp(r));
  p.reduce(out(0), addends, {0});
  p.kernel(KernelId::Finish, out(0), out(0), {0});
}

Schedule wholeVector(const char* name, Collective collective, uint32_t n, uint32_t root) {
  return {.name = name,
          .collective = collective,
          .root = root,
          .ranks = n,
          .inChunks = 1,
          .outChunks = 1,
          .tmpChunks = n};
}

}  // namespace

Schedule oneShotAllReduce(uint32_t n) {
  Schedule s = wholeVector("all-reduce one-shot", Collective::AllReduce, n, 0);
  s.program = [n](uint32_t me) {
    Program p;
    for (uint32_t k = 1; k < n; ++k) p.put((me + k) % n, in(0), tmp(me), {0});
    addAll(p, n, me);
    return p;
  };
  return s;
}

Schedule oneShotReduce(uint32_t n, uint32_t root) {
  Schedule s = wholeVector("reduce one-shot", Collective::Reduce, n, root);
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

}  // namespace weft
