// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "schedule/collective.h"

namespace weft::formats {

// What a foreign schedule computes: its collective, and into how many chunks it cuts In and Out.
struct Form {
  schedule::Collective collective = schedule::Collective::AllReduce;
  std::uint32_t ranks = 0;
  std::uint32_t parts = 1;   // of each rank's block
  std::uint32_t chunks = 1;  // of the larger buffer

  std::uint32_t inChunks() const { return schedule::hasOneIn(collective) ? parts : chunks; }
  std::uint32_t outChunks() const { return schedule::hasOneOut(collective) ? parts : chunks; }
};

}  // namespace weft::formats
