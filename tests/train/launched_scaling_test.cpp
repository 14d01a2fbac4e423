// SPDX-License-Identifier: Apache-2.0
// weft-train --scaling on ranks that mpirun has started.
#include <unistd.h>

#include <array>

#include "tests/train/small_runs.h"

namespace weft::train {
namespace {

class LaunchedScaling : public SmallRuns, public testing::WithParamInterface<std::string> {
 protected:
  bool hasLauncher() const { return shell("command -v " + GetParam()).exitCode == 0; }

  Outcome onThreeRanks(const std::string& flags) const {
    const std::string more =
        GetParam() == "mpirun.openmpi" ? "--allow-run-as-root --oversubscribe" : "";
    // MPICH's ranks would keep the cores that others need.
    return shell(
        fmt::format("WEFT_SPIN_US=0 timeout 100 {} {} -n 3 {}", GetParam(), more, command(flags)));
  }
};

TEST_P(LaunchedScaling, ItsTableHasRowsAndHosts) {
  if (!hasLauncher()) GTEST_SKIP() << "no " << GetParam();
  const Outcome outcome = onThreeRanks(fmt::format(
      "--scaling 1,3 --scaling-seconds 0.2 --scaling-rounds 2 --batch 2 --json {} --csv {}",
      folder_ / "json", folder_ / "csv"));
  ASSERT_EQ(outcome.exitCode, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("3 ranks of a launcher on 1 host,"), std::string::npos)
      << outcome.output;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const auto rows = nlohmann::json::parse(std::ifstream(folder_ / "json")).at("scaling");
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("hosts"), nlohmann::json({host.data()}));
    EXPECT_GT(row.at("sequences_per_s").at("least"), 0);
    EXPECT_GT(row.at("independent_sequences_per_s").at("least"), 0);
  }
  EXPECT_EQ(rows[1].at("ranks"), 3);
  EXPECT_GT(rows[1].at("exposed_ms").at("median"), 0);
  std::ifstream csv(folder_ / "csv");
  std::string head, one, three;
  std::getline(std::getline(std::getline(csv, head), one), three);
  EXPECT_TRUE(head.starts_with("ranks,sequences_per_s,") && head.ends_with(",hosts")) << head;
  EXPECT_TRUE(three.starts_with("3,") && three.ends_with(fmt::format(",{}", host.data()))) << three;
}

TEST_P(LaunchedScaling, ItCannotHaveMoreRanksThanThereAre) {
  if (!hasLauncher()) GTEST_SKIP() << "no " << GetParam();
  const Outcome outcome = onThreeRanks("--scaling 1,2,4 --batch 2");
  EXPECT_EQ(outcome.exitCode, 64);
  EXPECT_NE(outcome.output.find(
                "--scaling 1,2,4 is for 4 ranks, and the launcher has started 3; start 4"),
            std::string::npos)
      << outcome.output;
}

TEST_P(LaunchedScaling, RanksThatAModelCannotHaveAreToldOnce) {
  if (!hasLauncher()) GTEST_SKIP() << "no " << GetParam();
  const Outcome outcome = onThreeRanks("--tensor 2 --batch 2");
  EXPECT_EQ(outcome.exitCode, 64);
  const size_t at = outcome.output.find("weft-train: --tensor 2 does not divide 3 ranks");
  EXPECT_NE(at, std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("weft-train: ", at + 1), std::string::npos) << outcome.output;
}

TEST_P(LaunchedScaling, ARunThatFailsEndsIt) {
  if (!hasLauncher()) GTEST_SKIP() << "no " << GetParam();
  const Outcome outcome =
      onThreeRanks("--scaling 2 --scaling-seconds 5 --batch 2 --lr 1e30 --warmup 0 --clip 0");
  EXPECT_EQ(outcome.exitCode, 65);
  EXPECT_NE(outcome.output.find("the loss of rank 0 is "), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("no scaling table: the run with "), std::string::npos)
      << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(Mpi, LaunchedScaling, testing::Values("mpirun.openmpi", "mpirun.mpich"),
                         [](const auto& one) { return one.param.substr(one.param.find('.') + 1); });

}  // namespace
}  // namespace weft::train
