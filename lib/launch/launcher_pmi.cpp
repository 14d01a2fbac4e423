// SPDX-License-Identifier: Apache-2.0
// MPICH's mpiexec (Hydra), and others that speak PMI version 1 on PMI_FD.
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <mutex>

#include "base/invalid.h"
#include "base/text.h"
#include "bootstrap/bootstrap.h"
#include "launch/launcher_source.h"
#include "launch/pmi_wire.h"

namespace weft::launch {
namespace {

constexpr std::int64_t kFinalizeMs = 1000;

bool hasVariablesOfPmi() { return allSet({"PMI_FD", "PMI_RANK", "PMI_SIZE"}); }

Status identifyByPmi(Identity* identity) {
  return readIdentity({"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, identity);
}

// The process's one conversation with mpiexec. PMI can be initialized once, and mpiexec takes the
// end of a process that has not finalized for a crash, so it lives until exit.
class PmiSession {
 public:
  static PmiSession& get() {
    static PmiSession session;
    return session;
  }
  ~PmiSession() {
    // A forked child has inherited the descriptor, but is not the rank.
    if (client_ && owner_ == getpid()) (void)client_->finalize(Deadline::in(kFinalizeMs));
  }

  Status meet(const Identity& identity, Deadline deadline, bootstrap::UniqueId* id) {
    const std::lock_guard lock(mutex_);
    WEFT_TRY(open(deadline));
    const std::string key = text("weft-id-", rendezvous_++);
    if (identity.rank == 0) {
      WEFT_TRY(bootstrap::createUniqueId(id));
      WEFT_TRY(client_->put(key, idToHex(*id), deadline));
    }
    WEFT_TRY(client_->barrier(deadline));
    if (identity.rank == 0) return {};
    std::string hex;
    WEFT_TRY(client_->get(key, &hex, deadline));
    return idFromHex(hex, id);
  }

 private:
  Status open(Deadline deadline) {
    if (client_) return {};
    int fd = -1;
    WEFT_TRY(environmentNumber("PMI_FD", 0, 1 << 20, &fd));
    struct stat info {};
    if (fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode))
      return invalidVariable("PMI_FD", "PMI_FD=", fd,
                             " is not an open socket. fix: start the ranks directly with mpiexec, "
                             "or set WEFT_RANK, WEFT_SIZE and WEFT_ROOT");
    auto client = std::make_unique<PmiClient>(fd);
    WEFT_TRY(client->initialize(deadline));
    client_ = std::move(client);
    owner_ = getpid();
    return {};
  }

  std::mutex mutex_;
  std::unique_ptr<PmiClient> client_;
  pid_t owner_ = 0;
  int rendezvous_ = 0;
};

Status meetByPmi(const Identity& identity, Deadline deadline, bootstrap::UniqueId* id) {
  return PmiSession::get().meet(identity, deadline, id);
}

}  // namespace

const LauncherSource kPmiSource{"PMI", hasVariablesOfPmi, identifyByPmi, meetByPmi};

}  // namespace weft::launch
