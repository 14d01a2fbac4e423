// SPDX-License-Identifier: Apache-2.0
// The order in which reproducible steps add gradients, whatever the number of ranks.
//
// The sum is that of a binary tree over the micro-batches of all ranks: its node k, q is the sum of
// the micro-batches [q 2^k, (q + 1) 2^k), as far as there are so many. A rank by itself adds runs of
// its micro-steps, each a node of the tree: as long as the largest power of two that divides their
// number. Those of a turn, one a rank, are next to each other, and are reduced at once; the owner of
// a sum keeps the nodes that are complete until those beside them come. So gradients travel once a
// run: once a step where the micro-steps of a rank are a power of two.
#pragma once

#include <bit>
#include <cstdint>

namespace weft::shard {

// How many micro-steps make a run, of so many that a rank has in a step.
inline std::uint64_t runLengthOf(std::uint64_t microSteps) {
  return microSteps == 0 ? 0 : std::uint64_t{1} << std::countr_zero(microSteps);
}

// One micro-step of the gradients.
struct MicroStep {
  std::uint64_t index = 0;  // since the last optimizer step
  bool boundary = true;     // the last one before the optimizer step
  int timeoutMs = 0;
  std::uint64_t runLength = 0;  // of reproducible steps; 0: all of the step is one run

  std::uint64_t inRun() const { return runLength == 0 ? index : index % runLength; }
  std::uint64_t runsBefore() const { return runLength == 0 ? 0 : index / runLength; }
  bool endsRun() const { return runLength == 0 ? boundary : inRun() + 1 == runLength; }
};

}  // namespace weft::shard
