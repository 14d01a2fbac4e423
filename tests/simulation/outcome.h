// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace weft::simulation {

// What came of one seed.
struct Outcome {
  std::string fault;         // "" if all invariants held
  std::string story;         // what the seed did, and what the ranks said
  std::uint64_t trace = 0;   // equal if all that happened was equal
  bool harmed = false;       // a rank died, stopped, aborted, or a link was cut
  std::uint32_t failed = 0;  // ranks whose calls ended with an error
};

}  // namespace weft::simulation
