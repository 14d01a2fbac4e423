// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "transports/wire/wire.h"

namespace weft::transport {

// A wire between threads that does everything that the contract of wires allows: writes arrive in
// random order, after random delays, and are refused now and then.
struct Shuffle {
  std::uint64_t seed = 1;
  bool ordered = false;  // each rail keeps its order, and may be quiet
  std::uint32_t rails = 1;
  std::size_t maxWrite = 80000;
  bool anySource = false;  // sends from all memory, not only from what is registered
};

Status makeShuffledWire(const wire::WireSetup& setup, const Shuffle& shuffle,
                        std::unique_ptr<wire::Wire>* out);

}  // namespace weft::transport
