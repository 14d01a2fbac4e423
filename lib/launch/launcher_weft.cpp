// SPDX-License-Identifier: Apache-2.0
// WEFT_RANK, WEFT_SIZE, WEFT_ROOT: set by hand or by a tool that knows better than every launcher.
#include "base/invalid.h"
#include "base/knobs.h"
#include "base/text.h"
#include "launch/launcher_source.h"

namespace weft::launch {
namespace {

bool hasVariablesOfKnobs() { return isSet(Knob::Rank) || isSet(Knob::Size); }

Status identifyByKnobs(Identity* identity) {
  return readIdentity({"WEFT_RANK", "WEFT_SIZE", "WEFT_LOCAL_RANK", "WEFT_LOCAL_SIZE"}, identity);
}

Status meetByKnobs(const Identity& identity, Deadline deadline, bootstrap::UniqueId* id) {
  std::string root;
  WEFT_TRY(readText(Knob::Root, &root));
  if (root.empty())
    return invalidVariable(
        "WEFT_ROOT",
        "WEFT_RANK and WEFT_SIZE are set, but WEFT_ROOT is not. fix: set WEFT_ROOT=host:port of "
        "rank 0 on all ranks");
  const std::string job = text("root ", root.substr(root.rfind(':') + 1));
  return ofVariable("WEFT_ROOT", idForJob(identity, root, job, deadline, id));
}

}  // namespace

const LauncherSource kWeftSource{"WEFT_RANK", hasVariablesOfKnobs, identifyByKnobs, meetByKnobs};

}  // namespace weft::launch
