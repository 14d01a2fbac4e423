// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/launcher.h"

#include <array>

#include "base/log.h"
#include "base/text.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/launcher_source.h"

namespace weft {
namespace {

bool always() { return true; }

Status alone(Identity* identity) {
  *identity = Identity{0, 1, 0, 1, {}, {}};
  return {};
}

Status meetAlone(const Identity&, Deadline, UniqueId* id) {
  return createUniqueId(id, IdScope::ThisProcess);
}

constexpr LauncherSource kAloneSource{"none (one rank alone)", always, alone, meetAlone};

// In order of precedence.
constexpr std::array kSources = {&kWeftSource,  &kTorchrunSource, &kPmixSource, &kPmiSource,
                                 &kSlurmSource, &kAwsBatchSource, &kAloneSource};

// "Slurm says rank 0 of 2", if it differs; nothing if its variables make no sense.
std::string contradiction(const LauncherSource& source, const Identity& believed) {
  Identity other;
  if (!source.identify(&other).ok()) return {};
  if (other.rank == believed.rank && other.size == believed.size) return {};
  return text(source.name, " says rank ", other.rank, " of ", other.size);
}

std::string contradictions(const Identity& believed) {
  std::string all;
  for (const LauncherSource* source : kSources) {
    if (source == &kAloneSource || source->name == believed.source || !source->present()) continue;
    const std::string one = contradiction(*source, believed);
    if (!one.empty()) all += text(all.empty() ? "" : ", ", one);
  }
  return all;
}

std::string localPart(const Identity& identity) {
  if (identity.localRank < 0 || identity.localSize < 0) return {};
  return text(" (local rank ", identity.localRank, " of ", identity.localSize, ')');
}

}  // namespace

Status identify(Identity* identity) {
  for (const LauncherSource* source : kSources) {
    if (!source->present()) continue;
    *identity = Identity();
    WEFT_TRY(source->identify(identity));
    identity->source = source->name;
    identity->conflicts = contradictions(*identity);
    break;
  }
  logInfo("rank ", identity->rank, " of ", identity->size, localPart(*identity),
          ", launcher: ", identity->source,
          identity->conflicts.empty() ? "" : "; not believed: ", identity->conflicts);
  return {};
}

Status rendezvousId(const Identity& identity, UniqueId* id, Deadline deadline) {
  if (identity.size == 1) return meetAlone(identity, deadline, id);
  for (const LauncherSource* source : kSources) {
    if (source->name == identity.source) return source->meet(identity, deadline, id);
  }
  return Status::error(Code::InvalidArgument,
                       text("no launcher is called \"", identity.source, '"'));
}

}  // namespace weft
