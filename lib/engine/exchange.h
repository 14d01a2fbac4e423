// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/pairs.h"
#include "reduce/reduce.h"
#include "schedule/collective.h"

// The uneven calls in which a rank knows its own counts only: gather, scatter and all-to-all.
namespace weft::engine {

// A buffer of blocks, as slots 0, 1, ... of In or Out (schedule/collective.h). Counts and displs are
// in elements.
struct Blocks {
  std::byte* start = nullptr;  // of In: only read
  std::span<const std::size_t> counts;
  std::span<const std::size_t> displs;  // where they start; empty: packed
};

struct Exchange {
  schedule::Collective collective;  // Gather, Scatter or AllToAll
  std::uint32_t rank, ranks, root;
  Blocks in, out;
  reduce::DType type;
};

// What this rank sends and receives. No plan, as the lengths are another rank's and another call's
// every time; but who moves which slot to whom is read from the collective's direct schedule, whose
// proof (lib/verify) therefore holds for these batches, too. That the lengths agree at both ends,
// which the proof takes for granted, the tags of Pairs compare.
std::vector<PairOp> batchOf(const Exchange& exchange);

}  // namespace weft::engine
