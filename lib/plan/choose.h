// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/call.h"
#include "plan/model.h"
#include "schedule/ir.h"

namespace weft {

// What the choice of an algorithm depends on besides the call: agreed when the communicator is
// made, so that every rank chooses alike.
struct Tuning {
  std::uint32_t ranks = 1;
  std::vector<std::uint32_t> nodes;  // by rank: its node; empty: one node
  bool direct = false;               // peers' user memory can be written
  bool shares = false;               // memory from weftMemAlloc can be reached by loads and stores
  bool sharesAll = false;            // all memory can
  Ground ground;
  std::optional<std::uint64_t> oneShotMax;  // bytes; up to here everybody sends everything
  std::optional<std::uint64_t> directMin;   // of a block; from here on puts land in the buffer
  std::string algorithm;                    // WEFT_ALGO: as Call::algorithm where that is empty
};

// Algorithm, landing and transforms for `call`, a pure function of its arguments: what the call or
// a knob asks for, else the cheapest by the model.
//
// A forced algorithm is a name of the registry, optionally with its landing: "ring", "mesh:staged",
// "mesh:direct". InvalidUsage if the name is unknown for this collective or does not fit the call;
// there is no fallback.
Status choose(const Call& call, const Tuning& tuning, Schedule* out);

// With which schedule `call` runs where all ranks' buffers are shared, if it gains by that. Where
// they are not, or are not to be, choose() has the answer; so 'shared', forced, is a wish. Sums
// have the same bits as those of the default algorithms.
std::optional<Schedule> chooseShared(const Call& call, const Tuning& tuning);

// Does that schedule gain even where buffers are not shared, with kernel copies? 'shared:direct'
// forces it.
bool kernelCopiesGain(const Call& call, const Tuning& tuning);

// A way to run a call and what the model thinks of it.
struct Form {
  std::string name;  // "mesh:direct", as it may be forced
  double ns = 0;
};
// All ways that are considered for a call that forces nothing.
std::vector<Form> formsOf(const Call& call, const Tuning& tuning);

// What decides: the call, a knob or the model.
std::string_view reasonFor(const Call& call, const Tuning& tuning);

// The names that may be forced for a collective, separated by commas.
std::string algorithmNames(Collective collective);

}  // namespace weft
