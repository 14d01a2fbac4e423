// SPDX-License-Identifier: Apache-2.0
// Files of /proc and cgroups, whose names of programs, groups and devices are others' to choose.
#include <sstream>

#include "fuzz.h"
#include "net/interfaces.h"
#include "topology/cores.h"
#include "watch/proc_stat.h"

namespace weft::fuzz {

void tryInput(Input input) {
  const std::string content(textOf(input));
  watch::ProcStat stat;
  if (watch::parseProcStat(content, &stat)) {
    require(!stat.cause().empty(), "an end has a cause");
    (void)stat.dying();
  }
  (void)topology::coresOfCpuMax(content);
  for (const std::string& file : topology::quotaFiles(content).cpuMax)
    require(file.starts_with("/sys/fs/cgroup"), "quotas are of cgroups");
  std::istringstream v4(content), v6(content);
  (void)net::defaultRouteV4(v4);
  (void)net::defaultRouteV6(v6);
}

}  // namespace weft::fuzz
