// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::formats {

// What a foreign schedule may have, so that a small file cannot ask for all memory and time.
struct Limits {
  std::size_t bytes = std::size_t{64} << 20;  // of a file
  std::uint32_t ranks = 1024;
  std::uint32_t chunks = 1u << 18;  // of the larger buffer, and of scratch, of all ranks together
  std::uint32_t values = 1u << 21;  // chunks that are read, received and summed
  std::uint32_t hazardRanks = 256;  // up to so many the verifier looks for races, too
};

}  // namespace weft::formats
