// SPDX-License-Identifier: Apache-2.0
// WEFT_RANK, WEFT_SIZE, WEFT_ROOT: set by hand or by a tool that knows better than every launcher.
#include "base/knobs.h"
#include "base/text.h"
#include "bootstrap/launcher_source.h"

namespace weft {
namespace {

bool present() { return isSet(Knob::Rank) || isSet(Knob::Size); }

Status identifyByKnobs(Identity* identity) {
  WEFT_TRY(rankAndSize("WEFT_RANK", "WEFT_SIZE", identity));
  WEFT_TRY(optionalNumber("WEFT_LOCAL_RANK", 0, identity->size - 1, &identity->localRank));
  return optionalNumber("WEFT_LOCAL_SIZE", 1, identity->size, &identity->localSize);
}

Status meet(const Identity&, Deadline deadline, UniqueId* id) {
  std::string root;
  WEFT_TRY(readText(Knob::Root, &root));
  if (root.empty()) {
    return Status::error(
        Code::InvalidArgument,
        "WEFT_RANK and WEFT_SIZE are set, but WEFT_ROOT is not. fix: set WEFT_ROOT=host:port of "
        "rank 0 on all ranks");
  }
  return idForJob(root, text("root ", root), deadline, id);
}

}  // namespace

const LauncherSource kWeftSource{"WEFT_RANK", present, identifyByKnobs, meet};

}  // namespace weft
