// SPDX-License-Identifier: Apache-2.0
// Open MPI's mpirun, and Slurm's srun --mpi=pmix. No address is agreed beforehand; the id travels
// through the launcher's key-value store, which authenticates the processes of the job.
#include <atomic>

#include "base/text.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/launcher_source.h"
#include "bootstrap/pmix_client.h"

namespace weft {
namespace {

bool present() {
  return !environment("PMIX_RANK").empty() && !environment("PMIX_NAMESPACE").empty();
}

// Open MPI says all of it in variables; other launchers only in the store.
bool openMpi() { return !environment("OMPI_COMM_WORLD_SIZE").empty(); }

Status identifyByStore(Identity* identity) {
  PmixClient client;
  std::uint32_t size = 0, localRank = 0, localSize = 0;
  WEFT_TRY(client.open());
  WEFT_TRY(client.jobNumber(pmix::kJobSize, &size));
  identity->size = static_cast<int>(size);
  if (client.ownNumber(pmix::kLocalRank, &localRank).ok())
    identity->localRank = static_cast<int>(localRank);
  if (client.jobNumber(pmix::kLocalSize, &localSize).ok())
    identity->localSize = static_cast<int>(localSize);
  return environmentNumber("PMIX_RANK", 0, identity->size - 1, &identity->rank);
}

Status identifyByPmix(Identity* identity) {
  if (!openMpi()) return identifyByStore(identity);
  WEFT_TRY(rankAndSize("PMIX_RANK", "OMPI_COMM_WORLD_SIZE", identity));
  WEFT_TRY(
      optionalNumber("OMPI_COMM_WORLD_LOCAL_RANK", 0, identity->size - 1, &identity->localRank));
  return optionalNumber("OMPI_COMM_WORLD_LOCAL_SIZE", 1, identity->size, &identity->localSize);
}

// A new key for each meeting: what was once fetched from the store is cached.
Status meet(const Identity& identity, Deadline deadline, UniqueId* id) {
  static std::atomic<int> meetings{0};
  const std::string key = text("weft.id.", meetings++);
  PmixClient client;
  WEFT_TRY(client.open());
  if (identity.rank == 0) {
    WEFT_TRY(createUniqueId(id));
    WEFT_TRY(client.put(key, idToHex(*id)));
  }
  WEFT_TRY(client.fence(deadline));
  if (identity.rank == 0) return {};
  std::string hex;
  WEFT_TRY(client.get(0, key, &hex));
  return idFromHex(hex, id);
}

}  // namespace

const LauncherSource kPmixSource{"PMIx", present, identifyByPmix, meet};

}  // namespace weft
