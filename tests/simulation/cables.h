// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/simulation/scheduler.h"
#include "transports/wire/wire.h"

namespace weft::simulation {

// Simulated cards that write into the memory of other ranks: they keep the contract of
// transports/wire/wire.h and give nothing beyond it.
class Cables {
 public:
  struct Weather {
    std::size_t maxWrite = 1 << 20;
    bool anySource = false;  // else writes read the rank's own regions only
    Time usual = 5 * kMicrosecond;
    Time longest = 200 * kMicrosecond;
    Time clogged = 0;  // what one in fifty takes; 0: none
  };

  Cables(Scheduler& scheduler, std::uint32_t ranks, const Weather& weather);

  // Rank `rank`'s card, which lives in the fiber that calls this.
  std::unique_ptr<wire::Wire> plugIn(std::uint32_t rank, const wire::Regions& regions);
  // Nothing more gets from one to the other; both hear of it, the receiver perhaps late.
  void cut(std::uint32_t from, std::uint32_t to);
  void kill(std::uint32_t rank);
  void dismiss(std::uint32_t rank);

 private:
  friend class SimulatedWire;
  struct Port {
    wire::Regions regions;
    Scheduler::FiberId fiber = 0;
    bool plugged = false;
    bool dead = false;
    std::vector<wire::WireEvent> events;
    std::vector<std::uint32_t> downs;  // links whose end is not yet told
    Status lastError;
  };
  struct Link {
    bool cut = false;
    bool down = false;  // told
  };

  Link& link(std::uint32_t from, std::uint32_t to) { return links_[from * ports_.size() + to]; }
  Time delay();
  void send(std::uint32_t from, const wire::WireWrite& write);
  void deliver(std::uint32_t from, const wire::WireWrite& write);
  void tellDown(std::uint32_t rank, std::uint32_t peer, Time within);

  Scheduler& scheduler_;
  const Weather weather_;
  std::vector<Port> ports_;
  std::vector<Link> links_;
};

}  // namespace weft::simulation
