// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>

#include "base/status.h"
#include "plan/call.h"
#include "plan/layout.h"
#include "plan/plan.h"
#include "plan/staging_map.h"
#include "schedule/ir.h"
#include "transports/window.h"

namespace weft::plan {

// What binding needs to know of the communicator; equal on all ranks but for `rank`.
struct BindTarget {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t arrivalSlots = 0;      // per lane, for all peers together
  std::uint32_t dense = 0;             // of those, of each peer: side by side
  std::uint32_t pairArrivalSlots = 0;  // as WindowLayout says
  std::uint32_t ring = 0;
  transport::RingStages ringStages = {};  // those in use
  Budget budget;
  std::uint64_t maxPut = ~std::uint64_t{0};  // what one rank may send to another in an invocation
  // Results go past the caches where In and Out have so many bytes (streamMin() of model.h): they
  // would not stay there until the caller reads them, and a plain store first reads its line.
  std::uint64_t streamMin = ~std::uint64_t{0};
  bool flipsStores = false;  // the other way round

  // Each rank's region in the arrival slots and in the arena of every other.
  std::uint32_t arrivalsPerRegion() const { return arrivalSlots / ranks; }
  transport::ArrivalRegions regions(bool inRing) const {
    if (inRing) return {ranks, pairArrivalSlots / ranks, 0};
    return {ranks, arrivalsPerRegion(), dense};
  }
  std::uint64_t bytesPerRegion() const {
    return budget.arenaBytes / ranks / transport::kLine * transport::kLine;
  }
  std::uint64_t usedPerRegion() const { return std::min(bytesPerRegion(), maxPut); }
};

// Compiles `schedule` for one rank and one call: slots become offsets, runs become one op each
// where they are contiguous, a final Reduce takes its Finish along, short payloads move into the
// arrival slots. Where buffers are shared nothing is staged: what is made in a Tmp slot is made in the
// peer's buffer that it is put to. InvalidUsage if the schedule needs more arrival slots or staging memory than the
// communicator has.
Status bindSchedule(const schedule::Schedule& schedule, const Call& call, const BindTarget& target,
                    std::unique_ptr<Plan>* out);

}  // namespace weft::plan
