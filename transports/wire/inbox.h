// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "transports/wire/bounce_buffer.h"
#include "transports/wire/immediate_data.h"

namespace weft::wire {

// The receiving half of a WireTransport: counts remote completions, and raises the flag of an
// arrival slot when its put is whole.
class Inbox {
 public:
  // `seen`: by arrival slot, the completions of the put that is arriving; zeros, a page of which comes
  // with the slots that are raised.
  Inbox(BounceBuffer bounce, ArrivalSlot* arrivals, std::byte* seen)
      : bounce_(bounce), arrivals_(arrivals), seen_(seen) {}

  // The arrival slot that is raised by it, if any.
  const ArrivalSlot* take(ImmediateData immediate) {
    std::byte& seen = seen_[immediate.value];
    const auto count = std::to_integer<std::uint32_t>(seen) + 1;
    seen = static_cast<std::byte>(count < immediate.count ? count : 0);
    if (seen != std::byte{}) return nullptr;
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
  std::byte* seen_;
};

}  // namespace weft::wire
