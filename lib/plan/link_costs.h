// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/model.h"
#include "plan/op_prices.h"

namespace weft::plan {

// What a message costs, by how it comes to the peer.
class LinkCosts {
 public:
  explicit LinkCosts(const OpPrices& prices)
      : costs_(prices.costs()), ranks_(prices.schedule().ranks) {}

  // Of the core that sends it, and of the core that gets it.
  double messageNs(Medium by) const {
    if (by == Medium::Rails) return costs_.between->messageNs;
    return by == Medium::Cable ? costs_.cables->messageNs : 0;
  }
  double latencyNs(Medium by) const {
    if (by == Medium::Rails) return costs_.between->latencyNs;
    return by == Medium::Cable ? costs_.cables->latencyNs : roundNs(ranks_, costs_);
  }
  // Of a rank that has its rails for itself: bytes a nanosecond.
  double rankRate() const {
    const Between& between = *costs_.between;
    return between.rankBytesPerNs > 0 ? between.rankBytesPerNs : between.bytesPerNs;
  }
  double nsPerByte(std::uint32_t rank, std::uint32_t peer, Medium by) const {
    if (by == Medium::Memory) return 0;
    const double rate = by == Medium::Rails ? rankRate() : costs_.cables->between(rank, peer);
    return rate > 0 ? 1 / rate : kNever;
  }

 private:
  const CostParameters& costs_;
  const std::uint32_t ranks_;
};

}  // namespace weft::plan
