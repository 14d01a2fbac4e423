// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/peer_name.h"

namespace weft::inline base {

// By rank: the number of its host, counted in the order in which hosts appear.
std::vector<std::uint32_t> hostsOf(const std::vector<PeerName>& names);
// Of such numbers.
bool isOneHost(const std::vector<std::uint32_t>& hosts);

}  // namespace weft::inline base
