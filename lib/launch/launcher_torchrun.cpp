// SPDX-License-Identifier: Apache-2.0
// torchrun and everything else that speaks PyTorch's env:// convention.
#include "base/environment.h"
#include "base/text.h"
#include "bootstrap/job.h"
#include "launch/launcher_source.h"

namespace weft::launch {
namespace {

bool hasVariablesOfTorchrun() {
  return allSet({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"});
}

Status identifyByTorchrun(Identity* identity) {
  return readIdentity({"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}, identity);
}

// MASTER_PORT itself belongs to torchrun's own store, so rank 0 listens on the next one. The run id
// and the restart count make each generation of an elastic job a job of its own.
Status meetByTorchrun(const Identity& identity, Deadline deadline, bootstrap::UniqueId* id) {
  int port = 0;
  WEFT_TRY(environmentNumber("MASTER_PORT", 1, 65534, &port));
  const std::string host = environment("MASTER_ADDR");
  const std::string bracketed = host.find(':') == std::string::npos ? host : text('[', host, ']');
  const std::string job =
      text("torchrun ", port, ' ', bootstrap::jobName(bootstrap::JobKind::Torchrun));
  const std::string root = text(bracketed, ':', port + 1);
  return ofVariable("MASTER_ADDR", idForJob(identity, root, job, deadline, id));
}

}  // namespace

const LauncherSource kTorchrunSource{"torchrun", hasVariablesOfTorchrun, identifyByTorchrun,
                                     meetByTorchrun};

}  // namespace weft::launch
