// SPDX-License-Identifier: Apache-2.0
#include "tools/test/launch.h"

#include <gtest/gtest.h>

#include <memory>

#include "perf/common/launched.h"
#include "tests/unit/base/scoped_env.h"

namespace weft::test {
using namespace test;
namespace {

// As in a shell: without any launcher's variables.
class Launch : public testing::Test {
 protected:
  Launch() {
    for (const char* name : {"WEFT_RANK", "WEFT_SIZE", "PMIX_RANK", "PMI_RANK", "RANK",
                             "SLURM_STEP_NUM_TASKS", "AWS_BATCH_JOB_NODE_INDEX"}) {
      unset_.push_back(std::make_unique<ScopedEnv>(name, nullptr));
    }
    options_.ranks = 4;
  }

  std::vector<std::unique_ptr<ScopedEnv>> unset_;
  TestOptions options_;
};

TEST_F(Launch, IsSeenByTheVariablesOfEachLauncher) {
  EXPECT_FALSE(tools::isStartedByLauncher());
  EXPECT_EQ(tools::launchedRanks(), 1);
  for (const char* name :
       {"WEFT_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_STEP_NUM_TASKS", "AWS_BATCH_JOB_NODE_INDEX"}) {
    const ScopedEnv variable(name, "0");
    EXPECT_TRUE(tools::isStartedByLauncher()) << name;
    EXPECT_EQ(tools::launchedRanks(), 0) << name;
  }
  const ScopedEnv rank("RANK", "0");
  EXPECT_FALSE(tools::isStartedByLauncher()) << "many programs have a RANK";
  const ScopedEnv port("MASTER_PORT", "29500"), size("WORLD_SIZE", "16");
  EXPECT_TRUE(tools::isStartedByLauncher());
  EXPECT_EQ(tools::launchedRanks(), 16);
}

TEST_F(Launch, IsNotWantedForThisHost) {
  EXPECT_EQ(wantedLauncher(options_), "");
  options_.nodes = 1;
  options_.hosts = {"127.0.0.1", "localhost"};
  EXPECT_EQ(wantedLauncher(options_), "");
}

TEST_F(Launch, OfOtherHostsIsNamedWithItsCommand) {
  options_.nodes = 2;
  EXPECT_NE(wantedLauncher(options_).find("mpirun -n 4 weft-test"), std::string::npos);
  options_.hosts = {"10.0.0.1", "10.0.0.2"};
  EXPECT_NE(wantedLauncher(options_).find("mpirun -n 4 --host 10.0.0.1:2,10.0.0.2:2 weft-test"),
            std::string::npos);
  EXPECT_NE(wantedLauncher(options_).find("srun -N 2 -n 4 weft-test"), std::string::npos);
  const ScopedEnv launched("PMIX_RANK", "1");
  EXPECT_EQ(wantedLauncher(options_), "");
}

TEST_F(Launch, BySlurmMustBeSlurms) {
  options_.slurm = true;
  const ScopedEnv other("PMIX_RANK", "1");
  EXPECT_NE(wantedLauncher(options_).find("srun -n 4 weft-test"), std::string::npos);
  const ScopedEnv step("SLURM_STEP_NUM_TASKS", "4");
  EXPECT_EQ(wantedLauncher(options_), "");
}

}  // namespace
}  // namespace weft::test
