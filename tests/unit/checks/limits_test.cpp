// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/limits.h"

#include "tests/unit/checks/fake_tree.h"

namespace weft::checks {
namespace {

constexpr double kMiB = 1 << 20;

std::string kindsIn(const HostReport& report) {
  std::string all;
  for (const Finding& finding : report.findings) all += finding.kind + " ";
  return all;
}

HostReport judged(const Limits& limits, bool hasRdma = false) {
  HostReport report;
  report.host = "a";
  checkLimits(limits, hasRdma, report);
  return report;
}

Limits healthy() {
  Limits limits;
  limits.memory = limits.memoryLeft = 8192 * kMiB;
  limits.shm = limits.shmLeft = 64 * kMiB;  // Docker's
  return limits;
}

class LimitFiles : public FakeTree {
 protected:
  LimitFiles() {
    write("/proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max open files            1024                 20000                files     \n"
          "Max locked memory         65536                unlimited            bytes     ");
    write("/proc/self/status", "Name:\tx\nCapEff:\t00000000a80425fb");  // Docker's: no IPC_LOCK
    write("/proc/meminfo", "MemTotal:       1048576 kB\nMemAvailable:    524288 kB");
  }
};

TEST_F(LimitFiles, AreRead) {
  const Limits limits = readLimits(root());
  EXPECT_EQ(limits.lockedMemory, 65536);
  EXPECT_FALSE(limits.mayLockAll);
  EXPECT_EQ(limits.openFiles, 20000);
  EXPECT_EQ(limits.memory, 1024 * kMiB);
  EXPECT_EQ(limits.memoryLeft, 512 * kMiB);
  EXPECT_EQ(limits.tasksLeft, kUnlimited);
  EXPECT_EQ(limits.shm, 0);
}

TEST_F(LimitFiles, OfACgroupOfVersion2CountUpToTheRoot) {
  write("/proc/self/cgroup", "0::/job/step");
  write("/sys/fs/cgroup/job/step/memory.max", "max");
  write("/sys/fs/cgroup/job/step/memory.current", "1000");
  write("/sys/fs/cgroup/job/memory.max", std::to_string(200 << 20));
  write("/sys/fs/cgroup/job/memory.current", std::to_string(150 << 20));
  write("/sys/fs/cgroup/job/memory.stat", "anon 1\nfile 52428800\nshmem 20971520");
  write("/sys/fs/cgroup/job/pids.max", "500");
  write("/sys/fs/cgroup/job/pids.current", "480");
  write("/sys/fs/cgroup/job/step/memory.events", "oom 2\noom_kill 3");
  const Limits limits = readLimits(root());
  EXPECT_EQ(limits.memory, 200 * kMiB);
  EXPECT_EQ(limits.memoryLeft, 80 * kMiB);  // 50 left and 30 of page cache
  EXPECT_EQ(limits.tasksLeft, 20);
  EXPECT_EQ(readOomKills(root()), 3);
}

TEST_F(LimitFiles, OfACgroupOfVersion1) {
  write("/proc/self/cgroup", "4:memory:/box\n3:cpu,cpuacct:/box");
  write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(300 << 20));
  write("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(100 << 20));
  write("/sys/fs/cgroup/memory/box/memory.stat", "cache 10485760\nshmem 0");
  write("/sys/fs/cgroup/memory/box/memory.oom_control", "under_oom 0\noom_kill 1");
  const Limits limits = readLimits(root());
  EXPECT_EQ(limits.memory, 300 * kMiB);
  EXPECT_EQ(limits.memoryLeft, 210 * kMiB);
  EXPECT_EQ(readOomKills(root()), 1);
}

TEST(Limits, OfAContainerWithoutRdmaAreHealthy) {
  Limits limits = healthy();
  limits.lockedMemory = 65536;
  limits.openFiles = 4096;
  EXPECT_EQ(kindsIn(judged(limits)), "");
}

TEST(Limits, LockedMemoryCountsWithRdmaAndWithoutTheCapability) {
  Limits limits = healthy();
  limits.lockedMemory = 65536;
  const HostReport report = judged(limits, true);
  ASSERT_EQ(kindsIn(report), "memlock-low ");
  EXPECT_EQ(report.findings[0].severity, Severity::Fault);
  EXPECT_EQ(report.findings[0].culprit, "host a");
  EXPECT_NE(report.findings[0].what.find("64 KiB"), std::string::npos) << report.findings[0].what;
  limits.mayLockAll = true;
  EXPECT_EQ(kindsIn(judged(limits, true)), "");
}

TEST(Limits, ThatAreTooLowAreFound) {
  Limits limits = healthy();
  limits.openFiles = 256;
  limits.memoryLeft = 10 * kMiB;
  limits.tasksLeft = 5;
  limits.shmLeft = 0;
  EXPECT_EQ(kindsIn(judged(limits)), "nofile-low memory-tight pids-low shm-small ");
}

TEST(Limits, KillsForWantOfMemoryCountOnlyWhileTheChecksRan) {
  HostReport report;
  compareOomKills(3, 3, report);
  EXPECT_EQ(kindsIn(report), "");
  compareOomKills(3, 4, report);
  EXPECT_EQ(kindsIn(report), "oom-killed ");
}

}  // namespace
}  // namespace weft::checks
