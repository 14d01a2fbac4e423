// SPDX-License-Identifier: Apache-2.0
#include "topology/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace weft {
namespace {

TEST(Cores, ReadsQuota) {
  EXPECT_EQ(coresOfCpuMax("200000 100000"), 2u);
  EXPECT_EQ(coresOfCpuMax("150000 100000"), 2u);  // one and a half cores are two to wait on
  EXPECT_EQ(coresOfCpuMax("1000 100000"), 1u);
  EXPECT_EQ(coresOfCpuMax("max 100000"), 0u);
  EXPECT_EQ(coresOfCpuMax(""), 0u);
  EXPECT_EQ(coresOfCpuMax("100000"), 0u);
  EXPECT_EQ(coresOfCpuMax("100000 0"), 0u);
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
}  // namespace weft
