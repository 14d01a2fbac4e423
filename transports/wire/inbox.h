// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "transports/wire/bounce_buffer.h"
#include "transports/wire/immediate_data.h"

namespace weft::wire {

// The receiving half of a WireTransport: counts remote completions, and raises the flag of an
// arrival slot when its put is whole.
class Inbox {
 public:
  Inbox(BounceBuffer bounce, ArrivalSlot* arrivals)
      : bounce_(bounce), arrivals_(arrivals), seen_(bounce.arrivals(), 0) {}

  // The arrival slot that is raised by it, if any.
  const ArrivalSlot* take(ImmediateData immediate) {
    std::uint8_t& seen = seen_[immediate.value];
    if (++seen < immediate.count) return nullptr;
    seen = 0;
    const BounceBuffer::Record& record = bounce_.arrived(immediate.value);
    ArrivalSlot& arrival = arrivals_[immediate.value];
    arrival.tag = record.tag;
    std::ranges::copy(record.inlined, arrival.inlined);
    arrival.flag.store(record.flag, std::memory_order_release);
    return &arrival;
  }
  // `peer` of this weft sends no other.
  bool makesSense(ImmediateData immediate, std::uint32_t peer, const WindowLayout& layout) const {
    return immediate.value < bounce_.arrivals() &&
           (layout.apart == 0 || layout.raisedBy(immediate.value) == peer);
  }

 private:
  BounceBuffer bounce_;
  ArrivalSlot* arrivals_;
  std::vector<std::uint8_t> seen_;  // by arrival slot: completions of the put that is arriving
};

}  // namespace weft::wire
