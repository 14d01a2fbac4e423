// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "plan/call.h"
#include "schedule/ir.h"

namespace weft {

// What the choice of an algorithm depends on besides the call: agreed when the communicator is
// made, so that every rank chooses alike.
struct Tuning {
  std::uint32_t ranks = 1;
  std::uint32_t cards = 1;       // ranks of a node, for two-level algorithms
  bool direct = false;           // peers' user memory can be written
  bool shares = false;           // memory from weftMemAlloc can be reached by loads and stores
  bool sharesAll = false;        // all memory can
  std::uint64_t sharedMin = 0;   // bytes of the longer buffer; from here on shared buffers gain
  std::uint64_t oneShotMax = 0;  // bytes; up to here everybody sends everything
  std::uint64_t directMin = 0;   // bytes of a block; from here on puts land in the receive buffer
  std::uint64_t directMax = ~std::uint64_t{0};  // bytes of a block; beyond it they do not
  std::uint64_t landingBytes = 0;               // of a segment, on the receiving rank
  std::string algorithm;                        // WEFT_ALGO: as Call::algorithm where that is empty
};

// Algorithm, landing and transforms for `call`, a pure function of its arguments.
//
// A forced algorithm is a name of the registry, optionally with its landing: "ring", "mesh:staged",
// "mesh:direct". InvalidUsage if the name is unknown for this collective or does not fit the call;
// there is no fallback.
Status choose(const Call& call, const Tuning& tuning, Schedule* out);

// With which schedule `call` runs where all ranks' buffers are shared, if it gains by that. Where
// they are not, or are not to be, choose() has the answer; so 'shared', forced, is a wish. Sums
// have the same bits as those of the default algorithms.
std::optional<Schedule> chooseShared(const Call& call, const Tuning& tuning);

// The names that may be forced for a collective, separated by commas.
std::string algorithmNames(Collective collective);

}  // namespace weft
