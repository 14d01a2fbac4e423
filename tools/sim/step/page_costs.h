// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::simulator {

// What is sharded is given back to the system after its use, and comes anew before the next: what
// that takes of a core, besides what is written there.
struct PageCosts {
  static constexpr double kPage = 4096;  // bytes, in which people count them

  double giveBackNsPerByte = 0;
  double touchNsPerByte = 0;
};

// Of this host, by the memory of the sharded optimizer (shard/memory.h); medians of some rounds of
// a few milliseconds each. Zero where there is no memory for it.
PageCosts measurePages();

}  // namespace weft::simulator
