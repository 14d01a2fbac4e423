// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/create.h"
#include "transports/transport.h"

namespace weft {

// By rank: the number of its host, counted in the order in which hosts appear.
std::vector<std::uint32_t> hostsOf(const std::vector<RankPlace>& members);
bool isOneHost(const std::vector<std::uint32_t>& hosts);

// Makes what WEFT_TRANSPORT asks for: one transport for all, or one inside each host and another
// between them. A choice of its own falls back from verbs to ofi between hosts, and says at WARN
// why if RoCE devices were there; what was asked for by name is used or is an error. Collective.
Status openTransport(const TransportSetup& setup, const std::vector<RankPlace>& members,
                     const std::string& wanted, std::unique_ptr<Transport>* out);

}  // namespace weft
