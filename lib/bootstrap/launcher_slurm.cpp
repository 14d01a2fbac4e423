// SPDX-License-Identifier: Apache-2.0
// srun without a PMI. Only the variables of the step count: those of the job are also set in a
// batch script, which is no rank.
#include "base/environment.h"
#include "base/text.h"
#include "bootstrap/hostlist.h"
#include "bootstrap/job.h"
#include "bootstrap/launcher_source.h"

namespace weft {
namespace {

bool present() {
  for (const char* name : {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"}) {
    if (environment(name).empty()) return false;
  }
  return true;
}

Status identifyBySlurm(Identity* identity) {
  WEFT_TRY(rankAndSize("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", identity));
  return optionalNumber("SLURM_LOCALID", 0, identity->size - 1, &identity->localRank);
}

// Rank 0 runs on the step's first node with every distribution of Slurm's but "arbitrary".
Status meet(const Identity&, Deadline deadline, UniqueId* id) {
  std::vector<std::string> hosts;
  WEFT_TRY(expandHostlist(environment("SLURM_STEP_NODELIST"), &hosts));
  const std::string job =
      text("slurm ", jobName(JobKind::Slurm), ' ', environment("SLURM_STEP_ID"));
  return idForJob(text(hosts.front(), ':', portForJob(job)), job, deadline, id);
}

}  // namespace

const LauncherSource kSlurmSource{"Slurm", present, identifyBySlurm, meet};

}  // namespace weft
