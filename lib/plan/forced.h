// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/call.h"
#include "plan/candidate.h"
#include "plan/tuning.h"

namespace weft::plan {

// What Call::algorithm or else WEFT_ALGO asks for: a name of the registry, if wanted with its
// protocol ("ring", "mesh:staged", "mesh:direct"), which is taken or refused. The name of an
// algorithm on shared buffers is a wish, for they may not be shared: "shared", and "shared:direct"
// for CMA copies of what is not.
struct Forced {
  std::string_view text;        // as it is written; empty: nothing is forced
  bool isKnob = false;          // by WEFT_ALGO, not by the call
  std::vector<Candidate> ways;  // that are left to choose from, if it is no wish
  std::string_view shared;      // the algorithm that is wished for
  bool copies = false;          // with CMA copies
  bool isWish() const { return !shared.empty(); }
};

// InvalidUsage if the name is unknown for this collective or does not fit the call: there is no
// fallback.
Status readForced(const Call& call, const Tuning& tuning, Forced* out);

// InvalidUsage if peers' buffers, which `forced` needs, cannot be written.
Status checkDirect(std::string_view forced, const Tuning& tuning);

// The names that a communicator may force for a collective, separated by commas: not of those that are
// made for known links.
std::string algorithmNames(schedule::Collective collective);

}  // namespace weft::plan
