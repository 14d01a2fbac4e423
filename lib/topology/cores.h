// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weft::topology {

// The cores in this thread's affinity mask; all if that cannot be read.
cpu_set_t allowedCores();

// How many cores threads that may run on `allowed` can keep busy, at least 1: no more than the CPU
// quotas of this process's cgroups, which are read again after a second. Launchers pin each rank to
// cores of its own, so what matters to ranks that wait for each other is the union of their masks.
std::uint32_t usableCores(const cpu_set_t& allowed);

// The quota of a cgroup v2 "cpu.max" line ("200000 100000", "max 100000") in whole cores, at least
// 1: who spins on the part of a core is stopped when it is used up. 0 if there is no quota or the
// line is malformed.
std::uint32_t coresOfCpuMax(const std::string& line);

// The files that may limit a process whose /proc/self/cgroup reads `cgroups`: of its group and all
// above it, those of version 1 as pairs of quota and period.
struct QuotaFiles {
  std::vector<std::string> cpuMax;
  std::vector<std::string> v1Groups;  // folders that hold cpu.cfs_quota_us and cpu.cfs_period_us
};
QuotaFiles quotaFiles(const std::string& cgroups);

}  // namespace weft::topology
