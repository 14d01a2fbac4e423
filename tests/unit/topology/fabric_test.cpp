// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/text.h"
#include "tests/temporary_folder.h"
#include "tools/topo/format.h"
#include "topology/fabric_file.h"

namespace weft::topology {
namespace {

Fabric parsed(const std::string& lines) {
  Fabric fabric;
  const Status status = parseFabric(lines, "f", &fabric);
  EXPECT_TRUE(status.ok()) << status.text();
  return fabric;
}

constexpr const char* kSmall =
    "# a comment\n"
    "weft-topology 1\n"
    "name two of four\n"
    "nodes a b ranks 4   # alike\n"
    "\n"
    "memory gbit 80 us 0.5\n"
    "mesh 1-0 gbit 100 us 3\n"
    "rail e0 gbit 100 us 20 ranks 0-1\n"
    "rail e1 gbit 50 us 30 ranks 0,2,3\n";

TEST(Fabric, ReadsWhatTheFileSays) {
  const Fabric f = parsed(kSmall);
  EXPECT_EQ(f.name, "two of four");
  ASSERT_EQ(f.nodes.size(), 2u);
  EXPECT_EQ(f.nodes[1].name, "b");
  EXPECT_EQ(f.ranks(), 8u);
  EXPECT_EQ(f.inside(0, 1)->gbit, 100);
  EXPECT_EQ(f.inside(1, 0)->us, 3);
  EXPECT_EQ(f.inside(2, 3)->gbit, 80) << "memory";
  EXPECT_NEAR(f.outside(0)->gbit, 50 + 50.0 / 3, 1e-9);
  EXPECT_EQ(f.outside(0)->us, 30);
  EXPECT_EQ(f.outside(1)->gbit, 50);
  EXPECT_EQ(f.railGbit(), 150);
  EXPECT_EQ(f.railGbitOf(0), 150);
  EXPECT_EQ(f.railGbitOf(1), 100);
}

TEST(Fabric, WithoutLinksThereIsNoWay) {
  const Fabric f = parsed("weft-topology 1\nnodes 1 ranks 2\n");
  EXPECT_FALSE(f.inside(0, 1).has_value());
  EXPECT_FALSE(f.outside(0).has_value());
}

TEST(Fabric, AllMeansEachPair) {
  EXPECT_EQ(parsed("weft-topology 1\nnodes 3 ranks 8\nmesh all gbit 100 us 3\n").mesh.size(), 28u);
}

TEST(Fabric, NodesMayDiffer) {
  const Fabric f = parsed("weft-topology 1\nnodes a b ranks 4\nnodes c ranks 2\n");
  EXPECT_EQ(f.ranks(), 10u);
  EXPECT_EQ(f.mostRanksOfANode(), 4u);
  EXPECT_TRUE(checkFabricFits(f, {4, 4, 2}).ok());
  EXPECT_EQ(checkFabricFits(f, {4, 4}).text(),
            "the topology file describes another job: it has 3 nodes, the job 2 hosts; fix: "
            "WEFT_TOPO_FILE for these hosts, or none");
  EXPECT_NE(
      checkFabricFits(f, {4, 4, 4}).text().find("its node c has 2 ranks, host 2 of the job 4"),
      std::string::npos);
}

TEST(Fabric, WhatIsWrittenIsReadAsTheSame) {
  for (const char* lines : {kSmall, "weft-topology 1\nnodes 3 ranks 8\nmesh all gbit 12.5 us 3\n",
                            "weft-topology 1\nnodes a b ranks 4\nnodes c ranks 2\n"}) {
    const Fabric f = parsed(lines);
    EXPECT_EQ(parsed(topo::formatFabric(f)), f) << topo::formatFabric(f);
  }
}

struct Bad {
  const char* lines;
  const char* error;
};

TEST(Fabric, LinksKeepTheirOrder) {
  const std::string links = "mesh 1-2 gbit 1 us 1\nmesh 0-1 gbit 1 us 1\nmesh 0-2 gbit 1 us 1\n";
  Fabric first, second;
  ASSERT_TRUE(parseFabric("weft-topology 1\nnodes a ranks 3\n" + links, "f", &first).ok());
  ASSERT_TRUE(parseFabric(topo::formatFabric(first), "f", &second).ok());
  EXPECT_EQ(first, second);
}

TEST(Fabric, RailsAreBounded) {
  std::string lines = "weft-topology 1\nnodes 2 ranks 1\n";
  for (std::size_t i = 0; i <= kMostRails; ++i)
    lines += text("rail r", i, " gbit 1 us 1 ranks 0\n");
  Fabric fabric;
  EXPECT_NE(parseFabric(lines, "f", &fabric).text().find("more than 1024 rails"),
            std::string::npos);
}

TEST(Fabric, BadFilesAreRefusedWithTheLine) {
  const std::string head = "weft-topology 1\nnodes a b ranks 4\n";
  const Bad bads[] = {
      {"mesh", "f:3: '' is no pair of ranks"},
      {"mesh 0-1", "f:3: 'gbit' is expected"},
      {"mesh 0-1 gbit x us 3", "f:3: 'x' is no rate in Gbit/s"},
      {"mesh 0-1 gbit 0 us 3", "f:3: '0' is no rate in Gbit/s"},
      {"mesh 0-1 gbit nan us 3", "f:3: 'nan' is no rate in Gbit/s"},
      {"mesh 0-1 gbit inf us 3", "f:3: 'inf' is no rate"},
      {"mesh 0-1 gbit 1 us -3", "f:3: '-3' is no latency"},
      {"mesh 0-1 gbit 1 us 3 more", "f:3: 'more' is too much"},
      {"mesh 0-0 gbit 1 us 3", "f:3: '0-0' is no pair of ranks"},
      {"mesh 0-4 gbit 1 us 3", "f:3: rank 4 is on no node: the largest has 4 ranks"},
      {"mesh all gbit 1 us 3\nmesh 1-2 gbit 1 us 3", "f:4: ranks 1 and 2 are joined twice"},
      {"rail gbit 1 us 3 ranks 0", "f:3: a name for the rail is expected"},
      {"rail e gbit 1 us 3", "f:3: 'ranks' is expected"},
      {"rail e gbit 1 us 3 ranks", "f:3: '' names no ranks"},
      {"rail e gbit 1 us 3 ranks 2-1", "f:3: '2-1' names no ranks"},
      {"rail e gbit 1 us 3 ranks 0,0", "f:3: rank 0 stands twice"},
      {"rail e gbit 1 us 3 ranks 0-3\nrail e gbit 1 us 3 ranks 0", "f:4: rail 'e' stands twice"},
      {"rail e gbit 1 us 3 ranks 0-2", "f:3: rank 3 of a node is on no rail"},
      {"nodes b ranks 4", "f:3: node 'b' stands twice"},
      {"nodes c", "f:3: 'ranks' is expected"},
      {"nodes ranks 4", "f:3: names of nodes or their number are expected"},
      {"nodes c ranks 0", "f:3: '0' is no number of ranks"},
      {"nodes c ranks 99999999999", "f:3: '99999999999' is no number of ranks"},
      {"nodes 4000000000 ranks 1", "f:3: 4000000000 nodes are not from 1"},
      {"memory gbit 1 us 1\nnodes c ranks 1", "f:4: 'nodes' stands after what joins them"},
      {"memory gbit 1 us 1\nmemory gbit 1 us 1", "f:4: a second 'memory'"},
      {"cable 0-1", "f:3: 'cable' is none of name, nodes, memory, mesh, rail"},
      {"name", "f:3: a name is expected"},
  };
  for (const Bad& bad : bads) {
    Fabric f;
    const Status status = parseFabric(head + bad.lines + "\n", "f", &f);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << bad.lines;
    EXPECT_NE(status.text().find(bad.error), std::string::npos)
        << bad.lines << ": " << status.text();
    EXPECT_TRUE(f.nodes.empty()) << "nothing is given back";
  }
}

TEST(Fabric, WhatIsNoTopologyIsRefused) {
  Fabric f;
  EXPECT_EQ(parseFabric("", "f", &f).text(),
            "f:0: it is empty; the first line is 'weft-topology 1'");
  EXPECT_EQ(parseFabric("<system>\n", "f", &f).text(),
            "f:1: '<system>': the first line is 'weft-topology 1'");
  EXPECT_EQ(parseFabric("weft-topology 2\n", "f", &f).text(),
            "f:1: version '2' of the format is not known; this weft reads 1");
  EXPECT_EQ(parseFabric("weft-topology 1\n", "f", &f).text(), "f:1: it has no 'nodes'");
  EXPECT_EQ(parseFabric("weft-topology 1\nmemory gbit 1 us 1\n", "f", &f).text(),
            "f:2: 'memory' stands before 'nodes'");
}

// Lines cut and mixed at random: an error or a fabric, never more.
TEST(Fabric, NoiseHarmsNothing) {
  std::mt19937 random(7);
  const std::string whole = kSmall;
  for (int i = 0; i < 20000; ++i) {
    std::string lines = whole;
    for (int k = 0; k < 3; ++k) {
      const std::size_t at = random() % lines.size();
      const std::size_t from = random() % whole.size();
      lines.replace(at, random() % 8, whole.substr(from, random() % 12));
      if (lines.empty()) lines.push_back('x');
    }
    Fabric f;
    if (parseFabric(lines, "f", &f).ok()) {
      Fabric again;
      EXPECT_TRUE(parseFabric(topo::formatFabric(f), "f", &again).ok()) << lines;
      EXPECT_EQ(again, f) << lines;
    }
  }
}

TEST(Fabric, TheExamplesAreGood) {
  std::size_t count = 0;
  const std::filesystem::path folder =
      std::filesystem::path(__FILE__).parent_path() / "../../../examples/topologies";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    Fabric f;
    const Status status = readFabric(entry.path(), &f);
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_GT(f.railGbit(), 0);
    ++count;
  }
  EXPECT_GE(count, 3u);
}

TEST(Fabric, AFileThatCannotBeReadIsNamed) {
  Fabric f;
  EXPECT_NE(readFabric("/nowhere/x", &f).text().find("/nowhere/x: No such file"),
            std::string::npos);
  EXPECT_NE(readFabric("/tmp", &f).text().find("/tmp"), std::string::npos);
  EXPECT_FALSE(readFabric("/tmp", &f).ok());
  const test::TemporaryFolder folder;
  const std::string large = folder / "large";
  std::ofstream(large) << "nodes 1\n";
  std::filesystem::resize_file(large, (16 << 20) + 1);
  EXPECT_EQ(readFabric(large, &f).text(), large + " is larger than 16 MiB");
}

TEST(Fabric, TheKnobNamesTheFile) {
  ::unsetenv("WEFT_TOPO_FILE");
  std::optional<Fabric> f;
  ASSERT_TRUE(fabricFromKnob(&f).ok());
  EXPECT_FALSE(f.has_value());
  const test::TemporaryFolder folder;
  const std::string path = folder.write("topo", kSmall);
  ::setenv("WEFT_TOPO_FILE", path.c_str(), 1);
  ASSERT_TRUE(fabricFromKnob(&f).ok());
  EXPECT_EQ(f.value().ranks(), 8u);
  ::unsetenv("WEFT_TOPO_FILE");
}

}  // namespace
}  // namespace weft::topology
