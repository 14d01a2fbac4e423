// SPDX-License-Identifier: Apache-2.0
// Dissemination barrier (Hensgen, Finkel, Manber 1988): after round k a rank has heard, directly or
// not, from the 2^(k+1) - 1 ranks before it. Any number of ranks, ceil(log2 n) rounds.
#include <bit>

#include "schedule/algorithms/generators.h"

namespace weft::schedule {

Schedule disseminationBarrier(uint32_t n) {
  const auto rounds = static_cast<uint32_t>(std::bit_width(n - 1));
  Schedule s = emptySchedule(Collective::Barrier, "dissemination", n, 1);
  s.signals = rounds;
  s.program = [n, rounds](uint32_t me) {
    Program p;
    for (uint32_t k = 0; k < rounds; ++k) {
      const uint32_t distance = 1u << k;
      p.signal((me + distance) % n, k);
      p.waitSignal((me + n - distance) % n, k);
    }
    return p;
  };
  return s;
}

}  // namespace weft::schedule
