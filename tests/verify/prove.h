// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.h"
#include "tests/verify/job.h"

// The proof of what runs: the very ops of all ranks' plans, on fingerprints instead of bytes, under
// the engine's rules on what may run when (engine/executor.h). For every byte:
//
//   result    every byte of Out ends with exactly the input or the sum that the collective
//             requires, divided, scaled and given to the epilogue once; nothing else of it is
//             written, In never. In rank order if that is promised, else the same bits on all
//             ranks.
//   races     every two conflicting accesses to a byte are ordered by program order, an arrival
//             that was awaited, or a completion. A put may read its source at any time until it is
//             drained or awaited, and write its target until it is awaited; the caller may touch
//             its buffers before it enters and after it has left. So every interleaving of lanes,
//             ranks and calls, however late the puts, gives the result of the one that was run.
//             That takes in the reuse of arrival slots and staging memory by later invocations.
//   staging   puts stay in their writer's region of arrival slots and arena, payloads fit their
//             arrival slots, and direct ones have a clear-to-send; peers' buffers are touched as
//             far as they are shared, once they are open.
//   arrivals  each is awaited exactly once, as that of the rank that put it; no rank leaves a call
//             before all have entered it, but a rooted one; nobody waits for ever.
namespace weft::verify {

struct ProofCount {
  std::uint64_t proofs = 0;
  std::uint64_t ops = 0;  // executed
};

// OK, or the first violation: a sentence with plan, ranks, call, segment, rank and op.
Status prove(const Job& job, ProofCount* count = nullptr);

}  // namespace weft::verify
