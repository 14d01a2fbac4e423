// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "schedule/ir.h"

// Composition: a schedule for few ranks and chunks, without signals, becomes a part of a larger one.
// Hierarchies, rails and "reduce-scatter, then all-gather" are all made of it.
namespace weft::schedule {

// Where the slots of one buffer of the part go: slot i becomes the parent's slots from
// first + i*step on.
struct Axis {
  Slot first = weft::schedule::in(0);
  uint32_t step = 1;
};

// How one rank of the part appears in the parent.
struct Place {
  uint32_t rank;           // its rank in the parent
  Axis in = {}, out = {};  // may be any buffers of the parent
  uint32_t tmp = 0;        // the parent's Tmp slot of the part's Tmp slot 0
  uint32_t scale = 1;      // one chunk of the part is this many consecutive chunks of the parent
  uint32_t chunk = 0;      // the parent's logical chunk of the part's logical chunk 0
  uint32_t chunkStep = 1;  // and how far apart the next ones are
  bool finish = true;      // false: the part's sums are partial, leave Apply(Finish) out
};

// The place of each rank of the part. tmp, scale, chunk and chunkStep are the same on all.
using Placement = std::function<Place(uint32_t partRank)>;

// Appends to `program` what rank `me` of `part` does, placed by `placeOf`. Runs that are no longer
// contiguous in the parent are split, alike at both ends. Copies of a slot to itself are dropped.
void embed(Program& program, const Schedule& part, uint32_t me, const Placement& placeOf);

}  // namespace weft::schedule
