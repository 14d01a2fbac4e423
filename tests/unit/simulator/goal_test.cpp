// SPDX-License-Identifier: Apache-2.0
// GOAL: what is written, and that LogGOPSim, where it is installed, takes as long for it as weft-sim.
#include "tools/sim/goal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/command.h"

namespace weft::simulator {
namespace {

namespace fs = std::filesystem;

// Rank 0 sends 7 bytes to rank 1, which then computes for 100 ps.
Goal sample() {
  Goal goal;
  goal.parameters = {2000000, 500000, 80};
  goal.ranks = {{{GoalOp::Kind::Send, 1, 8, 3, {}}},
                {{GoalOp::Kind::Receive, 0, 8, 3, {}}, {GoalOp::Kind::Calc, 0, 100, 0, {0}}}};
  return goal;
}

TEST(Goal, Text) {
  EXPECT_EQ(textOf(sample()),
            "// picoseconds; LogGOPSim -L 2000000 -o 500000 -g 0 -G 80 -O 0 -S 2147483647\n"
            "num_ranks 2\n"
            "\nrank 0 {\nl0: send 8b to 1 tag 3\n}\n"
            "\nrank 1 {\nl0: recv 8b from 0 tag 3\nl1: calc 100\nl1 requires l0\n}\n");
}

std::string hexOf(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    hex +=
        {kDigits[static_cast<unsigned char>(c) >> 4], kDigits[static_cast<unsigned char>(c) & 15]};
  }
  return hex;
}

std::string zeros(int bytes) { return std::string(static_cast<std::size_t>(2 * bytes), '0'); }

TEST(Goal, Binary) {
  const std::string head = "7f10" + zeros(6) + "02000000" + "0000" + "26" + zeros(7) + "59" +
                           zeros(7) + "59" + zeros(7) + "b7" + zeros(7);
  const std::string first = "0100000001000000" + zeros(4) + zeros(4) + "0101000000" + "08" +
                            zeros(7) + "03000000" + "0000" + zeros(16);
  const std::string second = "0200000001000000" + zeros(4) + zeros(4) + "0200000000" + "08" +
                             zeros(7) + "03000000" + "0000" + "01000000" + zeros(4) + zeros(4) +
                             "01000000" + "01000000" + "0300000000" + "64" + zeros(7) + zeros(4) +
                             "0000" + zeros(4) + "01000000" + zeros(4) + "01000000" + "01000000";
  EXPECT_EQ(hexOf(binaryOf(sample())), head + first + second);
}

class GoalFile : public ::testing::Test {
 protected:
  GoalFile() : folder_(fs::path(::testing::TempDir()) / ("weft_goal_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~GoalFile() override { fs::remove_all(folder_); }
  std::string file(const char* name) const { return folder_ / name; }
  std::string contentOf(const char* name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // On ranks that are each a node, with one rail of 100 Gbit/s.
  test::Outcome simulate(const std::string& call, int ranks) const {
    std::ofstream(file("rails.topo"))
        << "weft-topology 1\nnodes " << ranks << " ranks 1\nrail r gbit 100 us 20 ranks all\n";
    return onFile(call, "rails.topo");
  }
  test::Outcome onFile(const std::string& call, const char* topology) const {
    const std::string machine =
        fs::path(__FILE__).parent_path() / "../../machines/sapphire_rapids.machine";
    return test::runCommand(test::toolBeside("weft-sim") + " " + call + " --topology " +
                            file(topology) + " --machine " + machine + " --goal " +
                            file("out.bin") + " --json " + file("out.json") + " 2>&1");
  }
  double simulatedNs() const {
    return nlohmann::json::parse(contentOf("out.json"))["rows"][0]["time_ns"];
  }

 private:
  const fs::path folder_;
};

TEST_F(GoalFile, IsWrittenOfTheLastSize) {
  ASSERT_EQ(simulate("all_reduce -b 1K -e 2K -f 2 --algo ring", 3).exitCode, 0);
  EXPECT_EQ(hexOf(contentOf("out.bin")).substr(0, 24), "7f10" + zeros(6) + "03000000");
}

TEST_F(GoalFile, OneKindOfLinkAlone) {
  const auto expectRefused = [&](const char* lines, const std::string& call, const char* why) {
    std::ofstream(file("other.topo")) << lines;
    const test::Outcome o = onFile(call, "other.topo");
    EXPECT_EQ(o.exitCode, 64) << o.output;
    EXPECT_NE(o.output.find(why), std::string::npos) << o.output;
  };
  expectRefused("weft-topology 1\nnodes 1 ranks 2\nmemory gbit 100 us 1\n", "all_reduce",
                "--goal: ranks 0 and 1 share memory");
  expectRefused(
      "weft-topology 1\nnodes 2 ranks 2\nmesh all gbit 100 us 1\nrail r gbit 25 us 9 ranks all\n",
      "all_reduce --algo mesh", "differs from others in rate or latency");
  EXPECT_EQ(simulate("all_reduce --jitter 1", 2).exitCode, 64);
}

// To the nanosecond, where both models say the same: docs/prediction.md.
TEST_F(GoalFile, LogGopSimTakesAsLong) {
  if (test::runCommand("command -v LogGOPSim").exitCode != 0)
    GTEST_SKIP() << "no LogGOPSim (github.com/spcl/LogGOPSim) in PATH";
  for (const int ranks : {2, 3, 7, 16, 64})
    for (const char* call :
         {"all_reduce --algo ring --message-us 0.5", "all_reduce --algo circulant --message-us 0",
          "all_reduce --algo mesh --message-us 0", "reduce_scatter --algo ring --message-us 0",
          "alltoall --algo direct --message-us 0"}) {
      ASSERT_EQ(simulate(std::string(call) + " -b 64K -e 64K", ranks).exitCode, 0);
      const bool free = std::string_view(call).ends_with(" 0");
      const test::Outcome o = test::runCommand(
          std::string("LogGOPSim -b -g 0 -G 80 -O 0 -S 2147483647 -L 20000000 -o ") +
          (free ? "0" : "500000") + " -f " + file("out.bin"));
      std::smatch found;
      ASSERT_TRUE(std::regex_search(o.output, found,
                                    std::regex("Maximum finishing time at host "
                                               "[0-9]+: ([0-9]+)")))
          << o.output;
      EXPECT_NEAR(simulatedNs(), std::stod(found[1]) / 1e3, 0.1) << call << ", " << ranks;
    }
}

}  // namespace
}  // namespace weft::simulator
