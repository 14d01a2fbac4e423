// SPDX-License-Identifier: Apache-2.0
// Dissemination barrier (Hensgen, Finkel, Manber 1988): after round k a rank has heard, directly or
// not, from the 2^(k+1) - 1 ranks before it. Any number of ranks, ceil(log2 n) rounds.
#include <bit>

#include "schedule/generators.h"

namespace weft {

Schedule disseminationBarrier(uint32_t n) {
  const auto rounds = static_cast<uint32_t>(std::bit_width(n - 1));
  return {.name = "barrier dissemination",
          .collective = Collective::Barrier,
          .ranks = n,
          .signals = rounds,
          .program = [n, rounds](uint32_t me) {
            Program p;
            for (uint32_t k = 0; k < rounds; ++k) {
              p.signal((me + (1u << k)) % n, k);
              p.waitSignal(k);
            }
            return p;
          }};
}

}  // namespace weft
