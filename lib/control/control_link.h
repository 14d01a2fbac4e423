// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "transports/transport.h"
#include "watch/far_ranks.h"
#include "watch/liveness.h"

namespace weft {

// The control link of a communicator some of whose ranks share no memory: a star of authenticated
// TCP connections around rank 0's process, which the communicator keeps. Each rank has one thread
// for its connection, rank 0's process another for the hub; they sleep in poll(2) until somebody
// asks, proposes or dies, and block all signals.
//
// To be wired like this, in buildCommunicator() once the transport is made, on all ranks or none
// (equal facts: does any rank not map another's page?):
//
//   setup.own = &transport.own().control();
//   setup.mirrors[r] = mirror page of rank r that transport.control(r) hands out, or null;
//   WEFT_TRY(openControlLink(setup, &parts.farRanks));
//
// `farRanks` goes to the constructor of Watch and must outlive it; the pages must outlive
// `farRanks`: declare it in Communicator::Parts after the transport. Dropping it says good-bye if
// Watch::leaveForGood() has not, and does not wait. The hub stays in rank 0's process until the
// last rank has left.
//
// What it costs: nothing in a call that does not wait 20 ms. What it gives, by default: the death
// of a process is told to all ranks 50 ms after its connection closed unless a rank of the same
// host says more first; a host that is cut off after 3 to 4 s. A stopped process is not dead, since
// its kernel answers; after 3 s it is named at WARN by those who wait.
//
// The key of the link goes over `exchange`, so whoever could read that could join the link.
struct ControlLinkSetup {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::vector<PeerName> names;  // by rank
  Exchange exchange;
  ControlPage* own = nullptr;
  std::vector<ControlPage*> mirrors;  // by rank; null where the page is mapped, and for oneself
  Deadline deadline = Deadline::in(120000);
};

// Collective: all ranks get a link, or all get an error, which names the rank that it comes from.
Status openControlLink(const ControlLinkSetup& setup, std::shared_ptr<FarRanks>* out);

}  // namespace weft
