// SPDX-License-Identifier: Apache-2.0
#include "topology/cores.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/folder.h"

namespace weft::topology {
namespace {

constexpr const char* kRoot = "/sys/fs/cgroup";
constexpr std::chrono::seconds kQuotaIsRecent{1};

std::string content(const std::string& path) {
  std::ostringstream all;  // an iterator over the file would throw what a failing read says
  all << std::ifstream(path).rdbuf();
  return all.str();
}

// "/a/b", "/a" and "", each with `root` before it.
std::vector<std::string> upwards(const std::string& root, std::string path) {
  std::vector<std::string> all;
  while (true) {
    if (!path.empty() && path.back() == '/') path.pop_back();
    all.push_back(root + path);
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return all;
    path.resize(slash);
  }
}

std::uint32_t quotaV1(const std::string& group) {
  const std::string quota = firstLine(group + "/cpu.cfs_quota_us");
  const std::string period = firstLine(group + "/cpu.cfs_period_us");
  return quota.empty() || quota[0] == '-' ? 0 : coresOfCpuMax(quota + " " + period);
}

std::uint32_t readQuota() {
  std::uint32_t cores = UINT32_MAX;
  const auto limit = [&cores](std::uint32_t quota) {
    if (quota != 0) cores = std::min(cores, quota);
  };
  const QuotaFiles files = quotaFiles(content("/proc/self/cgroup"));
  for (const std::string& file : files.cpuMax) limit(coresOfCpuMax(firstLine(file)));
  for (const std::string& group : files.v1Groups) limit(quotaV1(group));
  return cores;
}

// Communicators are made by the dozen, and these files change seldom.
std::uint32_t recentQuota() {
  using Clock = std::chrono::steady_clock;
  static std::atomic<Clock::rep> readAt{0};
  static std::atomic<std::uint32_t> cores{0};
  const Clock::rep now = Clock::now().time_since_epoch().count();
  if (cores == 0 || now - readAt > Clock::duration(kQuotaIsRecent).count()) {
    cores = readQuota();
    readAt = now;
  }
  return cores;
}

}  // namespace

std::uint32_t coresOfCpuMax(const std::string& line) {
  std::istringstream words(line);
  std::uint64_t quota = 0, period = 0;
  if (!(words >> quota >> period) || quota == 0 || period == 0) return 0;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(quota / period, 1, UINT32_MAX));
}

// Lines are "ID:CONTROLLERS:PATH"; version 2 is "0::PATH".
QuotaFiles quotaFiles(const std::string& cgroups) {
  QuotaFiles files;
  std::istringstream lines(cgroups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      for (const std::string& group : upwards(kRoot, path))
        files.cpuMax.push_back(group + "/cpu.max");
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      for (const std::string& group : upwards(kRoot + ("/" + controllers), path))
        files.v1Groups.push_back(group);
    }
  }
  return files;
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
  return std::max(1u, std::min(static_cast<std::uint32_t>(CPU_COUNT(&allowed)), recentQuota()));
}

}  // namespace weft::topology
