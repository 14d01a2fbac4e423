// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "launch/launcher.h"
#include "tools/checks/kinds.h"

namespace weft::doctor {
namespace {

using checks::HostReport;
using checks::makeFinding;

// By the library's names, the innermost first: what a launcher must set to be believed, and what
// else it says.
struct Launcher {
  const char* name;
  std::vector<const char*> required, more;
};
const std::vector<Launcher>& launchers() {
  static const std::vector<Launcher> all = {
      {"WEFT_RANK",
       {"WEFT_RANK", "WEFT_SIZE"},
       {"WEFT_ROOT", "WEFT_LOCAL_RANK", "WEFT_LOCAL_SIZE"}},
      {"torchrun",
       {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"},
       {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}},
      {"PMIx", {"PMIX_RANK", "PMIX_NAMESPACE"}, {"OMPI_COMM_WORLD_SIZE"}},
      {"PMI", {"PMI_FD", "PMI_RANK", "PMI_SIZE"}, {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}},
      {"Slurm",
       {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"},
       {"SLURM_LOCALID", "SLURM_JOB_ID"}},
      {"AWS Batch",
       {"AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES"},
       {"AWS_BATCH_JOB_MAIN_NODE_INDEX", "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS"}}};
  return all;
}

bool isSetIn(const Variables& variables, const char* name) {
  const auto found = variables.find(name);
  return found != variables.end() && !found->second.empty();
}

std::string joined(const std::vector<const char*>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// "RANK=3 WORLD_SIZE=8" of those that are set.
std::string valuesOf(const Launcher& launcher, const Variables& variables) {
  std::string all;
  for (const auto* names : {&launcher.required, &launcher.more}) {
    for (const char* name : *names) {
      if (isSetIn(variables, name))
        all += fmt::format("{}{}={}", all.empty() ? "" : " ", name, variables.at(name));
    }
  }
  return all;
}

// A launcher of which only some of the variables are there is not asked by the library.
void findIncomplete(const Launcher& launcher, const Variables& variables, HostReport& report) {
  std::vector<const char*> here, missing;
  for (const char* name : launcher.required)
    (isSetIn(variables, name) ? here : missing).push_back(name);
  if (here.empty() || missing.empty()) return;
  report.findings.push_back(
      makeFinding("launcher-incomplete", "environment",
                  fmt::format("{} is not believed: {} {} set, but not {}", launcher.name,
                              joined(here), here.size() == 1 ? "is" : "are", joined(missing))));
}

void addVariables(const Variables& variables, HostReport& report) {
  std::string present;
  for (const Launcher& launcher : launchers()) {
    const std::string values = valuesOf(launcher, variables);
    if (values.empty()) continue;
    report.add(fmt::format("launcher.variables.{}", launcher.name), values);
    present += (present.empty() ? "" : ", ") + std::string(launcher.name);
    findIncomplete(launcher, variables, report);
  }
  report.add("launcher.present", present.empty() ? "none" : present);
}

}  // namespace

Job checkLauncher(const Variables& variables, HostReport& report) {
  addVariables(variables, report);
  launch::Identity identity;
  if (const Status status = launch::identify(&identity); !status.ok()) {
    report.findings.push_back(
        makeFinding("launcher-broken", "environment", status.message(), 0.8, status.data().fix));
    return {};
  }
  report.add("launcher.believed",
             fmt::format("{}: rank {} of {}", identity.source, identity.rank, identity.size));
  if (!identity.conflicts.empty())
    report.findings.push_back(makeFinding(
        "launcher-conflict", "environment",
        fmt::format("{} is believed (rank {} of {}), the innermost; {}", identity.source,
                    identity.rank, identity.size, identity.conflicts)));
  return {identity.source, identity.size, identity.localSize};
}

}  // namespace weft::doctor
