// SPDX-License-Identifier: Apache-2.0
// Direct: every block goes straight from where it is to where it belongs, rotated so that no two
// ranks start on the same peer.
#include "schedule/generators.h"

namespace weft {

Schedule directBroadcast(uint32_t n, uint32_t root) {
  return {.name = "broadcast direct",
          .collective = Collective::Broadcast,
          .root = root,
          .ranks = n,
          .inChunks = 1,
          .outChunks = 1,
          .program = [n, root](uint32_t me) {
            Program p;
            if (me == root) {
              for (uint32_t k = 1; k < n; ++k) p.put((root + k) % n, in(0), out(0), {0});
              p.copy(in(0), out(0), {0});
            } else {
              p.wait(out(0), {0});
            }
            return p;
          }};
}

Schedule directGather(uint32_t n, uint32_t root) {
  return {.name = "gather direct",
          .collective = Collective::Gather,
          .root = root,
          .ranks = n,
          .inChunks = 1,
          .outChunks = n,
          .logicalChunks = n,
          .program = [n, root](uint32_t me) {
            Program p;
            if (me != root) {
              p.put(root, in(0), out(me), {me});
              return p;
            }
            p.copy(in(0), out(root), {root});
            for (uint32_t k = 1; k < n; ++k) p.wait(out((root + k) % n), {(root + k) % n});
            return p;
          }};
}

Schedule directScatter(uint32_t n, uint32_t root) {
  return {.name = "scatter direct",
          .collective = Collective::Scatter,
          .root = root,
          .ranks = n,
          .inChunks = n,
          .outChunks = 1,
          .logicalChunks = n,
          .program = [n, root](uint32_t me) {
            Program p;
            if (me != root) {
              p.wait(out(0), {me});
              return p;
            }
            for (uint32_t k = 1; k < n; ++k) {
              const uint32_t r = (root + k) % n;
              p.put(r, in(r), out(0), {r});
            }
            p.copy(in(root), out(0), {root});
            return p;
          }};
}

Schedule directAllToAll(uint32_t n) {
  return {.name = "all-to-all direct",
          .collective = Collective::AllToAll,
          .ranks = n,
          .inChunks = n,
          .outChunks = n,
          .logicalChunks = n,
          .program = [n](uint32_t me) {
            Program p;
            for (uint32_t k = 1; k < n; ++k) {
              const uint32_t to = (me + k) % n;
              p.put(to, in(to), out(me), {to});
            }
            p.copy(in(me), out(me), {me});
            for (uint32_t k = 1; k < n; ++k) p.wait(out((me + n - k) % n), {me});
            return p;
          }};
}

Schedule directBarrier(uint32_t n) {
  return {.name = "barrier direct",
          .collective = Collective::Barrier,
          .ranks = n,
          .signals = n,
          .program = [n](uint32_t me) {
            Program p;
            for (uint32_t k = 1; k < n; ++k) p.signal((me + k) % n, me);
            for (uint32_t k = 1; k < n; ++k) p.waitSignal((me + n - k) % n);
            return p;
          }};
}

}  // namespace weft
