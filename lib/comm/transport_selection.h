// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace weft::comm {

using RankPair = std::pair<std::uint32_t, std::uint32_t>;  // first < second

// What carries bytes between the ranks of a communicator. Equal on all of them.
struct TransportSelection {
  std::string wanted = "auto";  // as in WEFT_TRANSPORT
  std::string between;          // the wire between hosts that "auto" has found; empty: not yet
  std::map<RankPair, std::uint32_t> lost;  // of pairs that have lost links: how many
};

}  // namespace weft::comm
