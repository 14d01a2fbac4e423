// SPDX-License-Identifier: Apache-2.0
// The measurements of pairs: all of them, over and over, and then those under suspicion once more,
// alone, beside a pair that is as usual.
#pragma once

#include <functional>
#include <vector>

#include "tools/health/blame.h"
#include "tools/health/pair_probe.h"
#include "tools/health/rounds.h"

namespace weft::health {

struct SweepOptions {
  double seconds = 15;
  int least = 2, most = 20;  // sweeps
};

// Collective. Measures all pairs, n/2 at a time, until the time is up. Returns how often; `matrix`
// has the best of each link then, the same on all ranks.
int sweepPairs(Crew& crew, PairProbe& probe, const SweepOptions& options, Matrix* matrix,
               const std::function<void(double)>& progress);

// Collective. Those of the suspects that stay slow through several trials, when nobody else talks,
// next to the pair that is usual (retrial.h); in about `seconds`, if that is enough for as many
// trials as the tolerance asks for. What arrives wrong is added to the matrix.
std::vector<Suspect> confirm(Crew& crew, PairProbe& probe, const std::vector<Suspect>& suspects,
                             const Tolerance& tolerance, double seconds, Matrix* matrix);

}  // namespace weft::health
