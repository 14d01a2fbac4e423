// SPDX-License-Identifier: Apache-2.0
// weft-doctor as a command: what it writes, and what its exit code says.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/command.h"
#include "tests/true_of_machine.h"
#include "tests/unit/doctor/with_variables.h"

namespace weft::doctor {
namespace {

namespace fs = std::filesystem;

using test::Outcome;

// The tool that was built with this test.
Outcome weftDoctor(const std::string& arguments) {
  return test::runCommand(test::toolBeside("weft-doctor") + " " + arguments + " 2>/dev/null");
}

std::string factIn(const nlohmann::json& report, const std::string& name) {
  for (const auto& fact : report.at("facts")) {
    if (fact.at("name") == name) return fact.value("text", "a number");
  }
  return "";
}

using Command = WithVariables;

TEST_F(Command, AHostThatRunsTheTestsMayRunAJob) {
  const std::string file = fs::path(::testing::TempDir()) / ("doctor_" + std::to_string(getpid()));
  const Outcome o = weftDoctor("--seconds 0.2 --json " + file);
  EXPECT_EQ(o.exitCode, 0) << o.output;
  const auto report = nlohmann::json::parse(std::ifstream(file));
  fs::remove(file);
  EXPECT_EQ(report.at("exit_code"), 0);
  EXPECT_EQ(o.output.rfind(report.at("verdict").get<std::string>() + "\n", 0), 0u) << o.output;
  EXPECT_EQ(factIn(report, "transport.between-processes"), "shm");
  EXPECT_NE(factIn(report, "launcher.believed").find("rank 0 of 1"), std::string::npos);
  EXPECT_NE(factIn(report, "library.libcrypto"), "");
  for (const auto& finding : report.at("findings")) {
    EXPECT_NE(finding.at("severity"), "fault") << finding.dump();
    if (!test::isTrueOfMachine(finding.at("kind").get<std::string>())) {
      EXPECT_EQ(finding.at("severity"), "note") << finding.dump();
    }
  }
}

TEST_F(Command, SettingsThatAreRefusedAreOneFindingAndNoRetry) {
  set("WEFT_LANES", "99");
  set("WEFT_TRANSPROT", "shm");
  const Outcome o = weftDoctor("--seconds 0.2 --json -");
  EXPECT_EQ(o.exitCode, 78) << o.output;
  const auto report = nlohmann::json::parse(o.output);
  std::vector<std::string> kinds;
  for (const auto& finding : report.at("findings")) kinds.push_back(finding.at("kind"));
  std::erase_if(kinds, test::isTrueOfMachine);
  ASSERT_GE(kinds.size(), 2u);
  EXPECT_EQ(kinds[0], "env-invalid");
  EXPECT_EQ(kinds[1], "env-unknown");
  EXPECT_NE(report.at("verdict").get<std::string>().find("must not run a job (1 fault)"),
            std::string::npos);
}

TEST_F(Command, PrintsForSchedulers) {
  const Outcome o = weftDoctor("--emit aws-batch");
  EXPECT_EQ(o.exitCode, 0);
  EXPECT_TRUE(nlohmann::json::accept(o.output)) << o.output;
  EXPECT_NE(weftDoctor("--emit k8s").output.find("podFailurePolicy"), std::string::npos);
  EXPECT_NE(weftDoctor("--kinds").output.find("### memory-corrupt"), std::string::npos);
}

TEST_F(Command, WrongUseIsRefused) {
  EXPECT_EQ(weftDoctor("--nonsense").exitCode, 64);
  EXPECT_EQ(weftDoctor("--emit cron").exitCode, 64);
  EXPECT_EQ(weftDoctor("--json /nowhere/x").exitCode, 73);
}

}  // namespace
}  // namespace weft::doctor
