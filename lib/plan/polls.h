// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

// How long a rank looks for what it waits for before it offers its core to others: the engine does so,
// and the simulator says what it takes.
namespace weft::plan {

constexpr std::uint32_t kPollsPerMicrosecond = 20;  // a poll with a pause takes about 50 ns

// Polls where ranks share cores, of one that waits for a rank of another core: about as long as it takes
// to hand the core over and get it back. The more ranks share a core, the more of them are kept by one
// that polls.
inline std::uint32_t pollsOnSharedCore(std::uint32_t ranks, std::uint32_t cores) {
  constexpr std::uint32_t kPolls = 40;
  return std::max(1u, kPolls * cores / std::max(1u, ranks));
}

}  // namespace weft::plan
