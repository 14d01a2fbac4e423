// SPDX-License-Identifier: Apache-2.0
#include "topology/cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

namespace weft {
namespace {

std::string firstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The process's own group in the unified hierarchy: "0::/user.slice/...".
std::string cgroupPath() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) == 0) return line.substr(3);
  }
  return "/";
}

std::uint32_t quotaV1() {
  const std::string quota = firstLine("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const std::string period = firstLine("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  return quota.empty() || quota[0] == '-' ? 0 : coresOfCpuMax(quota + " " + period);
}

}  // namespace

std::uint32_t coresOfCpuMax(const std::string& line) {
  std::istringstream words(line);
  std::uint64_t quota = 0, period = 0;
  if (!(words >> quota >> period) || quota == 0 || period == 0) return 0;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>((quota + period - 1) / period, UINT32_MAX));
}

cpu_set_t allowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return set;
  for (std::size_t core = 0; core < std::max(1u, std::thread::hardware_concurrency()); ++core)
    CPU_SET(core, &set);
  return set;
}

std::uint32_t usableCores(const cpu_set_t& allowed) {
  auto cores = static_cast<std::uint32_t>(CPU_COUNT(&allowed));
  // A limit may stand at any level above the process.
  for (std::string path = cgroupPath();; path.resize(path.find_last_of('/'))) {
    const std::uint32_t quota = coresOfCpuMax(firstLine("/sys/fs/cgroup" + path + "/cpu.max"));
    if (quota != 0) cores = std::min(cores, quota);
    if (path.empty() || path.find('/') == std::string::npos) break;
  }
  const std::uint32_t v1 = quotaV1();
  if (v1 != 0) cores = std::min(cores, v1);
  return std::max(1u, cores);
}

}  // namespace weft
