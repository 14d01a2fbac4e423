// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/hosts.h"
#include "base/status.h"
#include "comm/transport_selection.h"
#include "transports/transport.h"

namespace weft::comm {

// Makes what WEFT_TRANSPORT asks for: one transport for all, or one inside each host and another
// between them. A choice of its own falls back from verbs to ofi between hosts, and says at WARN
// why if RoCE devices were there; what was asked for by name is used or is an error. Collective.
//
// A pair of ranks that has lost its link gets the next that reaches: memory inside a host, ofi
// instead of verbs between hosts; also where a wire was asked for by name, since the other choice
// is no communicator at all. An error names a pair that nothing reaches any more.
Status openTransport(const transport::TransportSetup& setup, TransportSelection* selection,
                     std::unique_ptr<transport::Transport>* out);

// Where it fails and names pairs without a living cable (TransportSetup::uncabled), these may take
// the next way, as if they had lost a link: true if what is left of the mesh joins all ranks. What is
// then in `selection` opens another time.
bool goAround(const std::vector<PeerName>& names, const std::vector<RankPair>& uncabled,
              TransportSelection* selection);

// Is each pair of ranks to be joined by cables of its own, whatever it has lost since?
bool isMesh(const std::vector<PeerName>& names, const TransportSelection& selection);

// What carries bytes between two ranks, if anything is left: "verbs", "ofi" or "memory".
std::string carrierOf(const std::vector<PeerName>& names, const TransportSelection& selection,
                      const RankPair& pair);

}  // namespace weft::comm
