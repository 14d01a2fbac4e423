// SPDX-License-Identifier: Apache-2.0
// Open MPI's mpirun, and Slurm's srun --mpi=pmix. No address is agreed beforehand; the id travels
// through the launcher's key-value store, which authenticates the processes of the job.
#include <mutex>

#include "base/text.h"
#include "bootstrap/bootstrap.h"
#include "launch/launcher_source.h"
#include "launch/pmix_client.h"

namespace weft::launch {
namespace {

bool hasVariablesOfPmix() { return allSet({"PMIX_RANK", "PMIX_NAMESPACE"}); }

// The process's one conversation with the launcher. It lives until exit: a fence fails if a
// participant of it has finalized, even one that comes back.
class PmixSession {
 public:
  static PmixSession& get() {
    static PmixSession session;
    return session;
  }

  Status identify(Identity* identity) {
    const std::lock_guard lock(mutex_);
    WEFT_TRY(opened_);
    std::uint32_t size = 0, localRank = 0, localSize = 0;
    WEFT_TRY(client_.jobNumber(pmix::kJobSize, &size));
    identity->size = static_cast<int>(size);
    if (client_.ownNumber(pmix::kLocalRank, &localRank).ok())
      identity->localRank = static_cast<int>(localRank);
    if (client_.jobNumber(pmix::kLocalSize, &localSize).ok())
      identity->localSize = static_cast<int>(localSize);
    return environmentNumber("PMIX_RANK", 0, identity->size - 1, &identity->rank);
  }

  Status meet(const Identity& identity, Deadline deadline, bootstrap::UniqueId* id) {
    const std::lock_guard lock(mutex_);
    WEFT_TRY(opened_);
    // A new key for each rendezvous: what was once read from the store is cached.
    const std::string key = text("weft.id.", rendezvous_++);
    if (identity.rank == 0) {
      WEFT_TRY(bootstrap::createUniqueId(id));
      WEFT_TRY(client_.put(key, idToHex(*id)));
    }
    WEFT_TRY(client_.fence(deadline));
    if (identity.rank == 0) return {};
    std::string hex;
    WEFT_TRY(client_.get(0, key, &hex));
    return idFromHex(hex, id);
  }

 private:
  PmixSession() : opened_(client_.open()) {}

  std::mutex mutex_;
  PmixClient client_;
  Status opened_;
  int rendezvous_ = 0;
};

// Open MPI says all of it in variables; other launchers only in the store.
Status identifyByPmix(Identity* identity) {
  if (!allSet({"OMPI_COMM_WORLD_SIZE"})) return PmixSession::get().identify(identity);
  return readIdentity({"PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                       "OMPI_COMM_WORLD_LOCAL_SIZE"},
                      identity);
}

Status meetByPmix(const Identity& identity, Deadline deadline, bootstrap::UniqueId* id) {
  return PmixSession::get().meet(identity, deadline, id);
}

}  // namespace

const LauncherSource kPmixSource{"PMIx", hasVariablesOfPmix, identifyByPmix, meetByPmix};

}  // namespace weft::launch
