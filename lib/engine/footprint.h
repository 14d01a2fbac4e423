// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "plan/plan.h"
#include "transports/transport.h"

namespace weft::engine {

// Which parts of the windows the plans of a rank have touched so far. What no plan uses has no
// memory, so before a plan runs first, its rank commits all that it will touch, in its own window
// and in those of its peers. Both ends do, since either may be the first to come: so no access finds
// a page missing, and a lack of memory is an error of the call.
class Footprint {
 public:
  Footprint(transport::Transport& transport, std::uint32_t rank);

  Status cover(const plan::Plan& plan) { return plan.hasMemory ? Status() : coverNew(plan); }
  std::size_t bytes() const;  // beyond its own size

 private:
  // How far a region has been used: the part of a window that belongs to one writer.
  struct Reach {
    std::uint64_t arena = 0;     // bytes, in each lane
    std::uint32_t arrivals = 0;  // slots, in each lane
    std::uint32_t ring = 0;      // slots
    std::uint64_t shorter = 0;   // bytes of the ring's stages for its messages
    std::uint64_t longer = 0;
    std::uint64_t published = 0;  // bytes, in each lane: of its owner alone
  };
  using Regions = std::vector<Reach>;
  struct Piece;
  class Neighbours;

  Status coverNew(const plan::Plan& plan);
  void measure(const plan::Plan& plan, Regions* here, Regions* there) const;
  void measureArrival(const plan::Plan& plan, const plan::BoundOp& op, Reach* reach) const;
  void measurePlace(const plan::Plan& plan, const plan::Place& place, std::uint64_t bytes,
                    Regions* here) const;
  void measureStages(const plan::Plan& plan, Reach* reach) const;
  Status commit(const Regions& here, const Regions& there);
  template <class Part>
  Status commitEach(const Regions& here, const Regions& there, Part&& part);

  transport::Transport& transport_;
  const transport::WindowLayout& layout_;
  const std::uint32_t rank_;
  Regions here_;   // by writer: of this rank's window
  Regions there_;  // by peer: of the part of its window that this rank writes
};

}  // namespace weft::engine
