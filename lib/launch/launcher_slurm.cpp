// SPDX-License-Identifier: Apache-2.0
// srun without a PMI. Only the variables of the step count: those of the job are also set in a
// batch script, which is no rank.
#include "base/environment.h"
#include "base/text.h"
#include "bootstrap/job.h"
#include "launch/hostlist.h"
#include "launch/launcher_source.h"

namespace weft::launch {
namespace {

bool hasVariablesOfSlurm() {
  return allSet({"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"});
}

Status identifyBySlurm(Identity* identity) {
  return readIdentity({"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}, identity);
}

// Rank 0 runs on the step's first node with every distribution of Slurm's but "arbitrary".
Status meetBySlurm(const Identity& identity, Deadline deadline, bootstrap::UniqueId* id) {
  std::vector<std::string> hosts;
  constexpr const char* kNodes = "SLURM_STEP_NODELIST";
  WEFT_TRY(ofVariable(kNodes, expandHostlist(environment(kNodes), &hosts)));
  const std::string job = text("slurm ", bootstrap::jobName(bootstrap::JobKind::Slurm), ' ',
                               environment("SLURM_STEP_ID"));
  const std::string root = text(hosts.front(), ':', portForJob(job));
  return ofVariable(kNodes, idForJob(identity, root, job, deadline, id));
}

}  // namespace

const LauncherSource kSlurmSource{"Slurm", hasVariablesOfSlurm, identifyBySlurm, meetBySlurm};

}  // namespace weft::launch
