// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/ir.h"

namespace weft {

// Which slots are one memory when a rank calls in place: the smaller buffer lies in the larger one.
class MemoryMap {
 public:
  MemoryMap(const Schedule& s, bool inPlace)
      : collective_(s.collective), root_(s.root), inPlace_(inPlace) {}

  // The slot of In or Out that stands for `slot` of `rank`. Runs of the smaller buffer have one
  // chunk in block collectives, so they stay runs.
  Slot resolve(uint32_t rank, Slot slot) const {
    if (!aliased(rank)) return slot;
    const bool outIsSmaller =
        collective_ == Collective::ReduceScatter || collective_ == Collective::Scatter;
    if (outIsSmaller) return slot.buf == Buf::Out ? in(rank) : slot;
    return slot.buf == Buf::In ? out(inPlaceOut(collective_, rank, slot.index)) : slot;
  }

  bool aliased(uint32_t rank) const {
    return inPlace_ && allowsInPlace(collective_) && hasIn(collective_, root_, rank) &&
           hasOut(collective_, root_, rank);
  }

 private:
  Collective collective_;
  uint32_t root_;
  bool inPlace_;
};

}  // namespace weft
