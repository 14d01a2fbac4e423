// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/launcher.h"

#include "tests/unit/doctor/with_variables.h"

namespace weft::doctor {
namespace {

class Launcher : public WithVariables {
 protected:
  Job check() { return checkLauncher(variablesOfProcess(), report_); }
  std::string fact(const char* name) const {
    const checks::Fact* found = report_.find(name);
    return found == nullptr ? "" : found->text;
  }
  void setTorchrun() {
    set("RANK", "3");
    set("WORLD_SIZE", "8");
    set("LOCAL_WORLD_SIZE", "4");
    set("MASTER_ADDR", "127.0.0.1");
    set("MASTER_PORT", "29500");
  }
  void setSlurm(const char* rank, const char* size) {
    set("SLURM_PROCID", rank);
    set("SLURM_STEP_NUM_TASKS", size);
    set("SLURM_STEP_NODELIST", "node[1-2]");
  }

  checks::HostReport report_;
};

TEST_F(Launcher, NoneIsOneRankAlone) {
  EXPECT_EQ(check().size, 1);
  EXPECT_EQ(fact("launcher.present"), "none");
  EXPECT_NE(fact("launcher.believed").find("rank 0 of 1"), std::string::npos);
  EXPECT_TRUE(report_.findings.empty());
}

TEST_F(Launcher, TheInnermostIsBelievedAndTheOtherIsNoted) {
  setTorchrun();
  setSlurm("0", "2");
  const Job job = check();
  EXPECT_EQ(job.launcher, "torchrun");
  EXPECT_EQ(job.size, 8);
  EXPECT_EQ(job.localSize, 4);
  EXPECT_EQ(fact("launcher.present"), "torchrun, Slurm");
  EXPECT_EQ(fact("launcher.believed"), "torchrun: rank 3 of 8");
  EXPECT_NE(fact("launcher.variables.torchrun").find("WORLD_SIZE=8"), std::string::npos);
  ASSERT_EQ(report_.findings.size(), 1u);
  EXPECT_EQ(report_.findings[0].kind, "launcher-conflict");
  EXPECT_NE(report_.findings[0].what.find("Slurm says rank 0 of 2"), std::string::npos);
}

TEST_F(Launcher, WhoAgreesIsNoConflict) {
  setTorchrun();
  setSlurm("3", "8");
  check();
  EXPECT_TRUE(report_.findings.empty());
}

TEST_F(Launcher, NonsenseIsAFaultOfSettings) {
  setSlurm("9", "2");
  EXPECT_EQ(check().launcher, "");
  ASSERT_EQ(report_.findings.size(), 1u);
  EXPECT_EQ(report_.findings[0].kind, "launcher-broken");
  EXPECT_NE(report_.findings[0].what.find("SLURM_PROCID=9"), std::string::npos);
}

TEST_F(Launcher, WhatIsMissingIsNamed) {
  set("RANK", "3");
  set("WORLD_SIZE", "8");
  check();
  ASSERT_EQ(report_.findings.size(), 2u);
  EXPECT_EQ(report_.findings[1].kind, "launcher-broken") << "such a rank would run alone";
  EXPECT_EQ(report_.findings[0].kind, "launcher-incomplete");
  EXPECT_EQ(report_.findings[0].what,
            "torchrun is not believed: RANK, WORLD_SIZE are set, but not MASTER_ADDR, MASTER_PORT");
}

}  // namespace
}  // namespace weft::doctor
