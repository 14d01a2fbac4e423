// SPDX-License-Identifier: Apache-2.0
// Cores, clocks and NUMA nodes.
#include "tests/unit/checks/fake_tree.h"
#include "tools/checks/clock.h"
#include "tools/checks/cores.h"
#include "tools/checks/numa.h"

namespace weft::checks {
namespace {

std::string onlyKind(const HostReport& report) {
  if (report.findings.empty()) return "";
  return report.findings.size() == 1 ? report.findings[0].kind : "several";
}

HostReport reportOf(const CoreUse& before, const CoreUse& after) {
  HostReport report;
  compareCoreUse(before, after, 2, report);
  return report;
}

TEST(Cores, ThatAreBusyAreHealthy) {
  EXPECT_EQ(onlyKind(reportOf({0, 100, 5, 0, 0}, {6, 1300, 20, 0.5, 0})), "");
}

TEST(Cores, StolenTimeIsFound) {
  const HostReport report = reportOf({0, 100, 0, 0, 0}, {6, 700, 600, 0, 0});
  ASSERT_EQ(onlyKind(report), "cpu-stolen");
  EXPECT_NE(report.findings[0].what.find("50 %"), std::string::npos) << report.findings[0].what;
}

TEST(Cores, AQuotaThatStopsThemIsFound) {
  EXPECT_EQ(onlyKind(reportOf({0, 0, 0, 1, 0}, {6, 600, 0, 7, 0})), "cpu-throttled");
}

TEST(Cores, HeatIsFound) {
  EXPECT_EQ(onlyKind(reportOf({0, 0, 0, 0, 0}, {6, 600, 0, 0, 3})), "cpu-hot");
}

using CoreFiles = FakeTree;

TEST_F(CoreFiles, AreRead) {
  write("/proc/stat", "cpu  10 1 20 500 30 4 5 60 0 0\ncpu0 1 2 3");
  write("/proc/self/cgroup", "0::/job");
  write("/sys/fs/cgroup/job/cpu.stat", "nr_periods 9\nthrottled_usec 2500000");
  write("/sys/devices/system/cpu/online", "0-1");
  write("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_total_time_ms", "400");
  const CoreUse use = readCoreUse(root(), 7);
  EXPECT_EQ(use.steady, 7);
  EXPECT_EQ(use.busy, 40);
  EXPECT_EQ(use.stolen, 60);
  EXPECT_EQ(use.throttled, 2.5);
  EXPECT_EQ(use.hot, 0.4);
}

TEST_F(CoreFiles, SayWhatTheProcessorIs) {
  write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu avx2 fma abc");
  write("/proc/self/status", "Cpus_allowed_list:\t0-2,7");
  HostReport report;
  checkCores(root(), 3, report);
  EXPECT_EQ(report.find("cpu.model")->text, "Some CPU");
  EXPECT_EQ(report.find("cpu.features")->text, "avx2 fma");
  EXPECT_EQ(report.find("cores.allowed")->value, 4);
  EXPECT_EQ(report.find("nothing"), nullptr);
}

HostReport clocksOf(const ClockReading& before, const ClockReading& after) {
  HostReport report;
  compareClocks(before, after, report);
  return report;
}

TEST(Clock, ThatIsSlewedIsHealthy) {
  EXPECT_EQ(onlyKind(clocksOf({100, 10, 10, 0}, {106, 16, 16.003, 0})), "");
}

TEST(Clock, AStepIsFound) {
  EXPECT_EQ(onlyKind(clocksOf({100, 10, 10, 0}, {107, 16, 16, 0})), "clock-unsteady");
  EXPECT_EQ(onlyKind(clocksOf({100, 10, 10, 0}, {105.5, 16, 16, 0})), "clock-unsteady");
}

TEST(Clock, AReadingThatWasInterruptedIsNoStep) {
  EXPECT_EQ(onlyKind(clocksOf({100, 10, 10, 0}, {106.1, 16, 16.1, 0.2})), "");
}

TEST(Clock, AWrongSpeedIsFound) {
  EXPECT_EQ(onlyKind(clocksOf({100, 10, 10, 0}, {106, 16, 16.1, 0})), "clock-unsteady");
}

TEST(Clock, ThatIsHereIsSteady) {
  const ClockReading before = readClocks();
  const ClockReading after = readClocks();
  EXPECT_GT(after.steady, before.steady);
  EXPECT_LT(before.uncertainty, 1);
  EXPECT_GT(clockCost(), 0);
}

TEST(Clock, ASlowOneIsFound) {
  HostReport report;
  checkClockCost(30e-9, "/nowhere", report);
  EXPECT_EQ(onlyKind(report), "");
  checkClockCost(2e-6, "/nowhere", report);
  EXPECT_EQ(onlyKind(report), "clock-slow");
}

Numa twoNodes() {
  constexpr double kGiB = 1 << 30;
  return {{{0, {0, 1}, 64 * kGiB}, {1, {2, 3}, 63 * kGiB}, {2, {}, kGiB}}, {0, 1, 2, 3}, {0, 1, 2}};
}

TEST(NumaNodes, OfAboutEqualMemoryAreHealthy) {
  HostReport report;
  checkNuma(twoNodes(), report);
  EXPECT_EQ(onlyKind(report), "");
}

TEST(NumaNodes, AMissingModuleIsFound) {
  Numa numa = twoNodes();
  numa.nodes[1].bytes /= 4;
  HostReport report;
  checkNuma(numa, report);
  ASSERT_EQ(onlyKind(report), "numa-uneven");
  EXPECT_NE(report.findings[0].what.find("node 1"), std::string::npos) << report.findings[0].what;
}

TEST(NumaNodes, CoresWithoutTheirMemoryAreFound) {
  Numa numa = twoNodes();
  numa.allowedNodes = {0};
  HostReport report;
  checkNuma(numa, report);
  EXPECT_EQ(onlyKind(report), "numa-far-memory");
  numa.allowedCores = {0, 1};
  HostReport bound;
  checkNuma(numa, bound);
  EXPECT_EQ(onlyKind(bound), "");
}

using NumaFiles = FakeTree;

TEST_F(NumaFiles, AreRead) {
  write("/sys/devices/system/node/online", "0-1");
  write("/sys/devices/system/node/node1/cpulist", "4-5");
  write("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:       1024 kB");
  write("/proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t1");
  const Numa numa = readNuma(root());
  ASSERT_EQ(numa.nodes.size(), 2u);
  EXPECT_EQ(numa.nodes[1].cores, (std::set<int>{4, 5}));
  EXPECT_EQ(numa.nodes[1].bytes, 1 << 20);
  EXPECT_EQ(numa.allowedCores.size(), 8u);
  EXPECT_EQ(numa.allowedNodes, std::set<int>{1});
}

}  // namespace
}  // namespace weft::checks
