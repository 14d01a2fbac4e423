// SPDX-License-Identifier: Apache-2.0
// What processes of this host may have: locked memory, open files, memory, threads, /dev/shm.
#pragma once

#include <string>

#include "tools/checks/host.h"
#include "tools/checks/units.h"

namespace weft::checks {

struct Limits {
  double lockedMemory = kUnlimited;  // the soft limit, in bytes
  bool mayLockAll = false;           // the capability that lifts it (CAP_IPC_LOCK)
  double openFiles = kUnlimited;     // the hard limit, to which weft raises the soft one
  double memory = 0;                 // of the host or of the cgroup, whichever is less, in bytes
  double memoryLeft = kUnlimited;
  double tasksLeft = kUnlimited;  // processes and threads that the cgroup still allows
  double shm = 0, shmLeft = 0;    // of /dev/shm, in bytes; 0: it is not there
};
Limits readLimits(const std::string& root);
void checkLimits(const Limits& limits, bool hasRdma, HostReport& report);

// How often the kernel has killed a process of this cgroup for want of memory.
double readOomKills(const std::string& root);
void compareOomKills(double before, double after, HostReport& report);

}  // namespace weft::checks
