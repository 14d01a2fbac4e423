// SPDX-License-Identifier: Apache-2.0
// torchrun and everything else that speaks PyTorch's env:// convention.
#include "base/environment.h"
#include "base/text.h"
#include "bootstrap/job.h"
#include "bootstrap/launcher_source.h"

namespace weft {
namespace {

bool present() {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    if (environment(name).empty()) return false;
  }
  return true;
}

Status identifyByTorchrun(Identity* identity) {
  WEFT_TRY(rankAndSize("RANK", "WORLD_SIZE", identity));
  WEFT_TRY(optionalNumber("LOCAL_RANK", 0, identity->size - 1, &identity->localRank));
  return optionalNumber("LOCAL_WORLD_SIZE", 1, identity->size, &identity->localSize);
}

// MASTER_PORT itself belongs to torchrun's own store, so rank 0 listens on the next one. The run id
// and the restart count make each generation of an elastic job a job of its own.
Status meet(const Identity&, Deadline deadline, UniqueId* id) {
  int port = 0;
  WEFT_TRY(environmentNumber("MASTER_PORT", 1, 65534, &port));
  const std::string host = environment("MASTER_ADDR");
  const std::string bracketed = host.find(':') == std::string::npos ? host : text('[', host, ']');
  const std::string job = text("torchrun ", host, ' ', port, ' ', jobName(JobKind::Torchrun));
  return idForJob(text(bracketed, ':', port + 1), job, deadline, id);
}

}  // namespace

const LauncherSource kTorchrunSource{"torchrun", present, identifyByTorchrun, meet};

}  // namespace weft
