// SPDX-License-Identifier: Apache-2.0
// Full mesh: every block goes straight to its owner, n-1 parallel puts in one step. Puts are
// rotated, so that no two ranks start on the same peer. The owner adds all inputs at once in rank
// order.
#include "schedule/generators.h"

namespace weft {

Schedule meshReduceScatter(uint32_t n) {
  return {.name = "reduce-scatter mesh",
          .collective = Collective::ReduceScatter,
          .ranks = n,
          .inChunks = n,
          .outChunks = 1,
          .tmpChunks = n,
          .logicalChunks = n,
          .program = [n](uint32_t me) {
            Program p;
            for (uint32_t k = 1; k < n; ++k) {
              const uint32_t owner = (me + k) % n;
              p.put(owner, in(owner), tmp(me), {owner});
            }
            for (uint32_t k = 1; k < n; ++k) p.wait(tmp((me + n - k) % n), {me});
            std::vector<Slot> addends;
            for (uint32_t r = 0; r < n; ++r) addends.push_back(r == me ? in(me) : tmp(r));
            p.reduce(out(0), addends, {me});
            p.kernel(KernelId::Finish, out(0), out(0), {me});
            return p;
          }};
}

Schedule meshAllGather(uint32_t n) {
  return {.name = "all-gather mesh",
          .collective = Collective::AllGather,
          .ranks = n,
          .inChunks = 1,
          .outChunks = n,
          .logicalChunks = n,
          .program = [n](uint32_t me) {
            Program p;
            for (uint32_t k = 1; k < n; ++k) p.put((me + k) % n, in(0), out(me), {me});
            p.copy(in(0), out(me), {me});
            for (uint32_t k = 1; k < n; ++k) {
              const uint32_t from = (me + n - k) % n;
              p.wait(out(from), {from});
            }
            return p;
          }};
}

Schedule meshAllReduce(uint32_t n) {
  return reduceScatterAllGather("all-reduce mesh", meshReduceScatter(n), meshAllGather(n));
}

Schedule meshReduce(uint32_t n, uint32_t root) {
  return reduceScatterGather("reduce mesh", meshReduceScatter(n), directGather(n, root));
}

}  // namespace weft
