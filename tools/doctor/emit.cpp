// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/emit.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "perf/common/exit_code.h"

namespace weft::doctor {
namespace {

using namespace tools;

// In rising order, as Kubernetes wants them.
constexpr std::array kDoNotRetry = {kExitWrong,          kExitUsage,        kExitMismatch,
                                    kExitInternal,       kExitCannotStart,  kExitCannotWrite,
                                    kExitAuthentication, kExitConfiguration};

// What no rule matches is retried, so the last one ends what those before it do not name; there may
// be five (AWS Batch's API reference, EvaluateOnExit, whose example ends so, too). JSON has no
// comments: the block is valid as it is.
std::string awsBatch() {
  return fmt::format(R"({{
  "retryStrategy": {{
    "attempts": 5,
    "evaluateOnExit": [
      {{"onStatusReason": "Host EC2*", "action": "RETRY"}},
      {{"onExitCode": "{}", "action": "RETRY"}},
      {{"onExitCode": "{}", "action": "RETRY"}},
      {{"onExitCode": "{}", "action": "RETRY"}},
      {{"onReason": "*", "action": "EXIT"}}
    ]
  }}
}}
)",
                     kExitLost, kExitBad, kExitKilled);
}

// A prolog has no PATH. srun ends with its ranks' highest code, so a rank that was killed hides the
// code of the others.
std::string slurm() {
  const std::string doctor = std::filesystem::read_symlink("/proc/self/exe").string();
  return fmt::format(R"(# slurm.conf
Prolog=/etc/slurm/prolog.d/*
PrologFlags=Alloc
SchedulerParameters=nohold_on_prolog_fail
RequeueExit={},{},{}

# /etc/slurm/prolog.d/50-weft, executable: a prolog that fails drains its node and requeues the job
#!/bin/sh
{} --quick > /var/log/weft-doctor.log 2>&1; test $? -ne {}
)",
                     kExitBad, kExitLost, kExitKilled, doctor, kExitBad);
}

std::string kubernetes() {
  return fmt::format(R"(# spec of a Job
backoffLimit: 5
podFailurePolicy:
  rules:
  - action: Ignore
    onPodConditions:
    - type: DisruptionTarget
  - action: FailJob
    onExitCodes:
      operator: In
      values: [{}]
  - action: Count
    onExitCodes:
      operator: In
      values: [{}, {}, {}]
template:
  spec:
    restartPolicy: Never
)",
                     fmt::join(kDoNotRetry, ", "), kExitBad, kExitLost, kExitKilled);
}

}  // namespace

std::optional<std::string> schedulerConfig(std::string_view scheduler) {
  if (scheduler == "aws-batch") return awsBatch();
  if (scheduler == "slurm") return slurm();
  if (scheduler == "k8s") return kubernetes();
  return {};
}

}  // namespace weft::doctor
