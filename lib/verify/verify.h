// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.h"
#include "schedule/ir.h"
#include "schedule/registry.h"

// The proof that a schedule is right, for one shape. It runs the very ops that the engine runs, on
// fingerprints instead of bytes.
//
//   links    (link.cpp)    every Wait names exactly the run of one Put and who puts, and every
//                          arrival is waited for exactly once; slots exist, on ranks that have the buffer; In is
//                          never written; runs do not overlap partially; lengths agree at both
//                          ends.
//   deadlock (walk.h)      in-order execution reaches the end. Puts never block on the
//                          receiver and a Wait holds nothing, so then no engine that polls all lanes
//                          deadlocks.
//   result   (result.cpp)  every Out slot ends with exactly the chunk or the sum that the collective
//                          requires; Finish is applied once, to complete sums; Scale once, to
//                          inputs; nothing is read before it arrived, nothing is written twice; all
//                          replicas have the same bits, in rank order if that is promised.
//   hazards  (hazards.cpp) every two conflicting accesses to a slot are ordered by a chain of program
//                          order and messages (vector clocks). A Put accesses both its slots at any
//                          time between its issue and the peer's Wait. Without such races every
//                          interleaving, however late or early the puts complete, gives the result
//                          of the one that was run.
//
// This is one invocation by itself. What several do to each other, in slots that they use again and
// in buffers that are the caller's before and after, is proved of bound plans (prove.h).
//
// Beyond a few hundred ranks the clocks of the hazard pass (ranks^2 words) become the cost; there
// the tests run the first three alone, on programs of the same generators.
namespace weft::verify {

struct VerifyOptions {
  // Rank: also demand the bits of the rank-order sum
  schedule::SumOrder order = schedule::SumOrder::Algorithm;
  bool hazards = true;         // costs ranks^2 words; O(ops) checks alone without
  bool agreement = false;      // a rank that completes has heard from every rank (hazards only)
  bool outAfterEntry = false;  // a Put into Out is issued after its owner entered (hazards only)
  bool inPlace = false;        // In and Out may be the same memory, of what is staged (in_place.h)
};

struct VerifyCount {
  uint64_t ops = 0;  // executed by the passes, together
};

// OK, or the first violation: a sentence with schedule, ranks, rank, op and slot.
Status verify(const schedule::Schedule& schedule, const VerifyOptions& options = {},
              VerifyCount* count = nullptr);

}  // namespace weft::verify
