// SPDX-License-Identifier: Apache-2.0
#include "topology/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace weft::topology {
namespace {

TEST(Cores, ReadsQuota) {
  EXPECT_EQ(coresOfCpuMax("200000 100000"), 2u);
  EXPECT_EQ(coresOfCpuMax("150000 100000"), 1u) << "two that spin are stopped";
  EXPECT_EQ(coresOfCpuMax("1000 100000"), 1u);
  EXPECT_EQ(coresOfCpuMax("max 100000"), 0u);
  EXPECT_EQ(coresOfCpuMax(""), 0u);
  EXPECT_EQ(coresOfCpuMax("100000"), 0u);
  EXPECT_EQ(coresOfCpuMax("100000 0"), 0u);
}

TEST(Cores, QuotasMayStandAtAnyLevelAbove) {
  const std::vector<std::string> max{"/sys/fs/cgroup/user.slice/job/cpu.max",
                                     "/sys/fs/cgroup/user.slice/cpu.max", "/sys/fs/cgroup/cpu.max"};
  EXPECT_EQ(quotaFiles("0::/user.slice/job\n").cpuMax, max);
  EXPECT_EQ(quotaFiles("0::/\n").cpuMax, std::vector<std::string>{max.back()});
}

TEST(Cores, FindsTheGroupOfVersion1) {
  const QuotaFiles files = quotaFiles("3:cpuset:/x\n2:cpu,cpuacct:/docker/4711\n1:cpuacct:/y\n");
  const std::vector<std::string> groups{"/sys/fs/cgroup/cpu,cpuacct/docker/4711",
                                        "/sys/fs/cgroup/cpu,cpuacct/docker",
                                        "/sys/fs/cgroup/cpu,cpuacct"};
  EXPECT_EQ(files.v1Groups, groups);
  EXPECT_TRUE(files.cpuMax.empty());
  EXPECT_TRUE(quotaFiles("nonsense").v1Groups.empty());
}

TEST(Cores, FollowsAffinity) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (unsigned c = 0; c < CPU_SETSIZE; ++c) {
    if (CPU_ISSET(c, &before)) {
      CPU_SET(c, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usableCores(allowedCores()), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  const cpu_set_t after = allowedCores();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  EXPECT_EQ(usableCores(one), 1u) << "the mask that is given counts, not the caller's";
}

}  // namespace
}  // namespace weft::topology
