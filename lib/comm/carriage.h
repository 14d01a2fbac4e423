// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace weft {

// A rank as creation knows it.
struct RankPlace {
  std::string host;
  std::string hostId;  // equal = same host and network namespace
  int pid = 0;
};

using RankPair = std::pair<std::uint32_t, std::uint32_t>;  // first < second

// What carries bytes between the ranks of a communicator. Equal on all of them.
struct Carriage {
  std::string wanted = "auto";  // as in WEFT_TRANSPORT
  std::string between;          // the wire between hosts that "auto" has found; empty: not yet
  std::map<RankPair, std::uint32_t> lost;  // of pairs that have lost links: how many
};

}  // namespace weft
