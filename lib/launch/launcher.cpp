// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher.h"

#include <array>

#include "base/environment.h"
#include "base/log.h"
#include "base/number.h"
#include "base/text.h"
#include "bootstrap/bootstrap.h"
#include "launch/launcher_source.h"

namespace weft::launch {
namespace {

bool always() { return true; }

// Variables of launchers that give a size, but no way for ranks to meet.
struct Sizes {
  const char *rank, *size;
};
constexpr Sizes kUnbelieved[] = {{"RANK", "WORLD_SIZE"},
                                 {"PMI_RANK", "PMI_SIZE"},
                                 {"SLURM_PROCID", "SLURM_NTASKS"},
                                 {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                 {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
                                 {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"}};

// One rank alone would give wrong results where others were started beside it.
Status alone(Identity* identity) {
  for (const Sizes& names : kUnbelieved) {
    int size = 0;
    if (!parseNumber(environment(names.size), &size) || size <= 1) continue;
    return Status::error(
        Code::InvalidUsage, names.rank, "=", environment(names.rank), " and ", names.size, "=",
        size,
        " say that this is one rank of several, but nothing says how they meet; fix: for "
        "torchrun set MASTER_ADDR and MASTER_PORT, for mpirun install libpmix2, in Slurm "
        "start by srun, else set WEFT_RANK, WEFT_SIZE, WEFT_ROOT and WEFT_SECRET; for one "
        "rank alone WEFT_RANK=0 WEFT_SIZE=1");
  }
  *identity = Identity{0, 1, 0, 1, {}, {}};
  return {};
}

Status meetAlone(const Identity&, Deadline, bootstrap::UniqueId* id) {
  return bootstrap::createUniqueId(id, bootstrap::IdScope::ThisProcess);
}

constexpr LauncherSource kAloneSource{"none (one rank alone)", always, alone, meetAlone};

// In order of precedence.
constexpr std::array kSources = {&kWeftSource,  &kTorchrunSource, &kPmixSource, &kPmiSource,
                                 &kSlurmSource, &kAwsBatchSource, &kAloneSource};

// "Slurm says rank 0 of 2, ..." of those that differ; variables that make no sense say nothing.
std::string contradictions(const Identity& believed) {
  std::string all;
  for (const LauncherSource* source : kSources) {
    if (source == &kAloneSource || source->name == believed.source || !source->present()) continue;
    Identity other;
    if (!source->identify(&other).ok()) continue;
    if (other.rank == believed.rank && other.size == believed.size) continue;
    all +=
        text(all.empty() ? "" : ", ", source->name, " says rank ", other.rank, " of ", other.size);
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

Status rendezvousId(const Identity& identity, bootstrap::UniqueId* id, Deadline deadline) {
  if (identity.size == 1) return meetAlone(identity, deadline, id);
  for (const LauncherSource* source : kSources)
    if (source->name == identity.source) return source->meet(identity, deadline, id);
  return Status::error(Code::InvalidArgument, "no launcher is called \"", identity.source, '"');
}

}  // namespace weft::launch
