// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/limits.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "tools/checks/kinds.h"
#include "tools/checks/system_files.h"

namespace weft::checks {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kLeastLockedMemory =
    256 * kMiB;  // staging arenas and bounce buffers of some ranks
constexpr double kLeastOpenFiles = 1024;
constexpr double kLeastTasks = 256;
constexpr double kLeastMemory = 256 * kMiB;
constexpr double kLeastShm = 32 * kMiB;  // half of a container's default

// A line of /proc/self/limits: "Max locked memory   8388608   unlimited   bytes".
struct Limit {
  double soft = kUnlimited, hard = kUnlimited;
};

Limit limitNamed(const std::string& root, std::string_view name) {
  const auto number = [](const std::string& word) {
    return word.empty() || word == "unlimited" ? kUnlimited : std::strtod(word.c_str(), nullptr);
  };
  for (const std::string& line : readLines(root + "/proc/self/limits")) {
    if (!line.starts_with(name)) continue;
    std::istringstream words(line.substr(name.size()));
    std::string soft, hard;
    words >> soft >> hard;
    return {number(soft), number(hard)};
  }
  return {};
}

bool hasCapability(const std::string& root, unsigned number) {
  const std::string effective = readField(root + "/proc/self/status", "CapEff");
  return std::strtoull(effective.c_str(), nullptr, 16) >> number & 1;
}

struct Memory {
  double total = kUnlimited, left = kUnlimited;
};

// Page cache that is no shared memory is given up when asked for.
Memory memoryOfCgroup(const std::string& folder) {
  auto limit = readNumber(folder + "/memory.max");
  auto used = readNumber(folder + "/memory.current");
  if (!used) {  // version 1
    limit = readNumber(folder + "/memory.limit_in_bytes");
    used = readNumber(folder + "/memory.usage_in_bytes");
  }
  if (!limit || !used) return {};
  auto stat = readKeys(folder + "/memory.stat");
  const double cache = std::max(stat["file"], stat["cache"]) - stat["shmem"];
  return {*limit, *limit - std::max(0.0, *used - cache)};
}

Memory readMemory(const std::string& root) {
  const auto host = readKeys(root + "/proc/meminfo");
  Memory least;
  if (host.contains("MemTotal") && host.contains("MemAvailable"))
    least = {host.at("MemTotal") * 1024, host.at("MemAvailable") * 1024};
  for (const std::string& folder : cgroupFolders(root, "memory")) {
    const Memory group = memoryOfCgroup(folder);
    least.total = std::min(least.total, group.total);
    least.left = std::min(least.left, group.left);
  }
  return least;
}

double readTasksLeft(const std::string& root) {
  double left = kUnlimited;
  for (const std::string& folder : cgroupFolders(root, "pids")) {
    const auto most = readNumber(folder + "/pids.max");
    const auto now = readNumber(folder + "/pids.current");
    if (most && now) left = std::min(left, *most - *now);
  }
  return left;
}

void addFacts(const Limits& limits, HostReport& report) {
  report.add("limits.memlock", limits.lockedMemory, "bytes");
  report.add("limits.nofile", limits.openFiles, "files");
  report.add("memory.total", limits.memory, "bytes");
  report.add("memory.left", limits.memoryLeft, "bytes");
  report.add("limits.tasks-left", limits.tasksLeft, "threads");
  report.add("shm.total", limits.shm, "bytes");
  report.add("shm.left", limits.shmLeft, "bytes");
}

}  // namespace

Limits readLimits(const std::string& root) {
  constexpr unsigned kIpcLock = 14;
  Limits limits;
  limits.lockedMemory = limitNamed(root, "Max locked memory").soft;
  limits.mayLockAll = hasCapability(root, kIpcLock);
  limits.openFiles = limitNamed(root, "Max open files").hard;
  const Memory memory = readMemory(root);
  limits.memory = memory.total;
  limits.memoryLeft = memory.left;
  limits.tasksLeft = readTasksLeft(root);
  struct statvfs shm {};
  if (::statvfs((root + "/dev/shm").c_str(), &shm) == 0) {
    limits.shm = static_cast<double>(shm.f_blocks) * static_cast<double>(shm.f_frsize);
    limits.shmLeft = static_cast<double>(shm.f_bavail) * static_cast<double>(shm.f_frsize);
  }
  return limits;
}

void checkLimits(const Limits& limits, bool hasRdma, HostReport& report) {
  const auto find = [&](KindName kind, std::string what, double weight) {
    report.findings.push_back(makeFinding(kind, report.culprit(), std::move(what), weight));
  };
  addFacts(limits, report);
  if (hasRdma && !limits.mayLockAll && limits.lockedMemory < kLeastLockedMemory)
    find("memlock-low",
         fmt::format("{} of locked memory for each process (RLIMIT_MEMLOCK), RDMA needs {} or more",
                     inBytes(limits.lockedMemory), inBytes(kLeastLockedMemory)),
         1);
  if (limits.openFiles < kLeastOpenFiles)
    find("nofile-low",
         fmt::format("{} open files for each process at most, many ranks need {} or more",
                     inCount(limits.openFiles), inCount(kLeastOpenFiles)),
         0.5);
  if (limits.memoryLeft < kLeastMemory)
    find("memory-tight",
         fmt::format("{} of {} memory left", inBytes(std::max(0.0, limits.memoryLeft)),
                     inBytes(limits.memory)),
         1);
  if (limits.tasksLeft < kLeastTasks)
    find("pids-low",
         fmt::format("{} further processes and threads allowed", inCount(limits.tasksLeft)), 0.5);
  if (limits.shmLeft < kLeastShm)
    find("shm-small",
         limits.shm == 0 ? std::string("/dev/shm is not there")
                         : fmt::format("{} of {} left in /dev/shm", inBytes(limits.shmLeft),
                                       inBytes(limits.shm)),
         0);
}

// Of its own group: those above it count for others, too.
double readOomKills(const std::string& root) {
  for (const std::string& folder : cgroupFolders(root, "memory")) {
    for (const char* file : {"/memory.events", "/memory.oom_control"}) {
      const auto events = readKeys(folder + file);
      if (const auto kills = events.find("oom_kill"); kills != events.end()) return kills->second;
    }
  }
  return 0;
}

void compareOomKills(double before, double after, HostReport& report) {
  report.add("memory.oom-kills", after, "");
  if (after <= before) return;
  report.findings.push_back(makeFinding(
      "oom-killed", report.culprit(),
      fmt::format(
          "processes of this container that were killed for want of memory rose from {:.0f} "
          "to {:.0f}",
          before, after),
      1));
}

}  // namespace weft::checks
