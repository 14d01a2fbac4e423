// SPDX-License-Identifier: Apache-2.0
// weft-topo as a command: what it writes, and what its exit code says.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/command.h"
#include "topology/fabric_file.h"

namespace weft::topo {
namespace {

namespace fs = std::filesystem;

using test::Outcome;

// The tool that was built with this test.
Outcome weftTopo(const std::string& arguments) {
  return test::runCommand(test::toolBeside("weft-topo") + " " + arguments + " 2>&1");
}

class Command : public ::testing::Test {
 protected:
  Command() : folder_(fs::path(::testing::TempDir()) / ("weft_topo_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Command() override { fs::remove_all(folder_); }
  std::string file(const char* name) const { return folder_ / name; }
  static std::string example(const char* name) {
    return fs::path(__FILE__).parent_path() / "../../../examples/topologies" / name;
  }

 private:
  const fs::path folder_;
};

TEST_F(Command, SaysWhatIsHere) {
  const Outcome o = weftTopo("");
  EXPECT_EQ(o.exitCode, 0) << o.output;
  EXPECT_NE(o.output.find("host "), std::string::npos) << o.output;
  EXPECT_NE(o.output.find("libfabric.so.1"), std::string::npos) << o.output;
}

TEST_F(Command, WhatIsHereCanBeExportedAndReadAgain) {
  ASSERT_EQ(weftTopo("--ranks 4 --export " + file("here.topo")).exitCode, 0);
  topology::Fabric fabric;
  const Status read = topology::readFabric(file("here.topo"), &fabric);
  ASSERT_TRUE(read.ok()) << read.text();
  EXPECT_EQ(fabric.ranks(), 4u);
  EXPECT_EQ(weftTopo("--file " + file("here.topo")).exitCode, 0);
}

TEST_F(Command, AnExampleCanBeDrawn) {
  const Outcome o =
      weftTopo("--file " + example("dl1.24xlarge.topo") + " --svg " + file("dl1.svg"));
  EXPECT_EQ(o.exitCode, 0) << o.output;
  EXPECT_NE(o.output.find("full mesh, 28 links of 100 Gbit/s"), std::string::npos) << o.output;
  std::stringstream svg;
  svg << std::ifstream(file("dl1.svg")).rdbuf();
  EXPECT_EQ(svg.str().rfind("<svg", 0), 0u);
}

TEST_F(Command, ABadFileIsRefusedWithItsLine) {
  std::ofstream(file("bad.topo")) << "weft-topology 1\nnodes a ranks 4\nmesh 0-9 gbit 1 us 1\n";
  const Outcome o = weftTopo("--file " + file("bad.topo"));
  EXPECT_EQ(o.exitCode, 65);
  EXPECT_NE(o.output.find("bad.topo:3: rank 9 is on no node"), std::string::npos) << o.output;
  EXPECT_EQ(weftTopo("--file " + file("missing.topo")).exitCode, 65);
}

TEST_F(Command, WrongUseIsRefused) {
  EXPECT_EQ(weftTopo("--nonsense").exitCode, 64);
  EXPECT_EQ(weftTopo("--ranks 0").exitCode, 64);
  EXPECT_EQ(weftTopo("--export /nowhere/x").exitCode, 73);
}

}  // namespace
}  // namespace weft::topo
