// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/call.h"

namespace weft::plan {

// Bytes from the start of a rank's In and Out to the end of what a call reads and writes there. Of a
// buffer that the rank does not have (rooted calls, epilogues) it is of no meaning.
struct Extents {
  std::uint64_t in = 0, out = 0;
  bool hasGaps = false;  // between blocks
};

Extents extentsOf(const Call& call, std::uint32_t rank, std::uint32_t ranks);

}  // namespace weft::plan
