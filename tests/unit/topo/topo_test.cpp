// SPDX-License-Identifier: Apache-2.0
// What weft-topo says and draws.
#include <gtest/gtest.h>

#include <string_view>

#include "tools/topo/format.h"
#include "tools/topo/here.h"
#include "tools/topo/print.h"
#include "tools/topo/svg.h"
#include "topology/fabric_file.h"

namespace weft::topo {
namespace {

std::size_t countOf(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

topology::Fabric parsed(const std::string& lines) {
  topology::Fabric fabric;
  const Status status = topology::parseFabric("weft-topology 1\n" + lines, "f", &fabric);
  EXPECT_TRUE(status.ok()) << status.text();
  return fabric;
}

topology::HostDescription hostWith(std::vector<topology::HostDevice> devices) {
  topology::HostDescription host;
  host.name = "h";
  host.devices = std::move(devices);
  return host;
}

topology::HostDevice device(topology::HostDevice::Kind kind, const char* name, const char* busId,
                            double gbit, bool up) {
  topology::HostDevice d;
  d.kind = kind;
  d.name = name;
  d.busId = busId;
  d.gbit = gbit;
  d.up = up;
  return d;
}

TEST(Here, DevicesThatAreUpAndKnownAreRails) {
  const topology::Fabric f =
      fabricOf(hostWith({device(topology::HostDevice::Network, "eth0", "0000:00:01.0", 25, true),
                         device(topology::HostDevice::Network, "eth1", "0000:00:02.0", 100, true),
                         device(topology::HostDevice::Network, "eth2", "0000:00:03.0", 100, false),
                         device(topology::HostDevice::Network, "veth", "", 0, true),
                         device(topology::HostDevice::Rdma, "mlx5_0", "0000:00:02.0", 100, true)}),
               4);
  ASSERT_EQ(f.rails.size(), 2u);
  EXPECT_EQ(f.rails[0].name, "eth0");
  EXPECT_EQ(f.rails[1].name, "mlx5_0") << "and not eth1, which is the same port";
  EXPECT_EQ(f.rails[0].ranks.size(), 4u);
  topology::Fabric again;
  ASSERT_TRUE(topology::parseFabric(formatFabric(f), "f", &again).ok());
  EXPECT_EQ(again, f);
}

TEST(Print, SaysWhatTheFabricIs) {
  const std::string lines =
      describe(parsed("name x\nnodes a b ranks 4\nnodes c ranks 2\nmesh all gbit 100 us 3\n"
                      "rail e gbit 50 us 20 ranks 0-3\n"));
  EXPECT_EQ(lines,
            "x: 1 node of 2 ranks, 2 nodes of 4 ranks; 10 ranks in all\n"
            "  mesh: full mesh, 6 links of 100 Gbit/s, 3 us\n"
            "  rail e: 50 Gbit/s, 20 us, ranks 0,1,2,3\n"
            "  rails of a node together: 50 Gbit/s\n");
}

TEST(Print, SaysWhatIsMissing) {
  topology::HostDescription host =
      hostWith({device(topology::HostDevice::Network, "eth0", "", 0, false)});
  host.missing = "hwloc is missing";
  const std::string lines = describe(host);
  EXPECT_NE(lines.find("network eth0: down, rate unknown, on no bus"), std::string::npos) << lines;
  EXPECT_NE(lines.find("missing: hwloc is missing"), std::string::npos);
  for (const Optional& library : optionalLibraries())
    EXPECT_NE(describe(optionalLibraries()).find(library.file), std::string::npos);
}

TEST(Svg, DrawsEachRankLinkAndRail) {
  const std::string svg = drawSvg(parsed(
      "name a<b&c\nnodes a b ranks 4\nmesh all gbit 1 us 1\nrail e gbit 50 us 20 ranks 0-3\n"));
  EXPECT_EQ(countOf(svg, "<circle"), 8u);
  EXPECT_EQ(countOf(svg, "stroke=\"#888\""), 12u) << "mesh links";
  EXPECT_EQ(countOf(svg, "<title>e</title>"), 2u) << "a NIC of each node";
  EXPECT_NE(svg.find("a&lt;b&amp;c"), std::string::npos);
  EXPECT_EQ(countOf(svg, "<svg"), 1u);
  EXPECT_EQ(countOf(svg, "</svg>"), 1u);
}

TEST(Svg, SmallerNodesHaveTheLinksThatTheyCan) {
  const std::string svg =
      drawSvg(parsed("nodes a ranks 4\nnodes b ranks 2\nmesh all gbit 1 us 1\n"));
  EXPECT_EQ(countOf(svg, "<circle"), 6u);
  EXPECT_EQ(countOf(svg, "stroke=\"#888\""), 7u);
}

TEST(Svg, AHostHasItsCoresAndAllItsDevices) {
  topology::HostDescription host =
      hostWith({device(topology::HostDevice::Network, "eth0", "0000:00:03.0", 0, true),
                device(topology::HostDevice::Rdma, "mlx5_0", "0000:00:04.0", 100, false)});
  cpu_set_t mine{};
  for (const std::size_t core : {0u, 1u, 2u}) CPU_SET(core, &mine);
  EXPECT_EQ(countOf(drawSvg(host, mine), "class=\"core\""), 3u) << "without hwloc";
  host.numa.resize(2);
  for (std::size_t core = 0; core < 20; ++core) CPU_SET(core, &host.numa[core % 2].cores);
  const std::string svg = drawSvg(host, mine);
  EXPECT_EQ(countOf(svg, "class=\"core\""), 20u);
  EXPECT_EQ(countOf(svg, "fill=\"#cfe3f7\""), 3u) << "those that may be used";
  EXPECT_NE(svg.find("network eth0: up, rate unknown"), std::string::npos) << svg;
  EXPECT_NE(svg.find("rdma mlx5_0: down, 100 Gbit/s"), std::string::npos) << svg;
}

TEST(Here, AnExportNamesTheDevicesToComplete) {
  const std::string lines =
      exportOf(hostWith({device(topology::HostDevice::Network, "eth0", "", 0, true),
                         device(topology::HostDevice::Network, "eth1", "", 0, false)}),
               2);
  EXPECT_NE(lines.find("# rail eth0 gbit ? us ? ranks all"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("eth1"), std::string::npos) << lines;
  topology::Fabric again;
  EXPECT_TRUE(topology::parseFabric(lines, "f", &again).ok());
}

TEST(Svg, ManyNodesAreNotAllDrawn) {
  const std::string svg = drawSvg(parsed("nodes 100 ranks 2\nrail e gbit 1 us 1 ranks all\n"));
  EXPECT_EQ(countOf(svg, "<circle"), 2 * kMostDrawn);
  EXPECT_NE(svg.find("94 more nodes are not drawn"), std::string::npos);
}

}  // namespace
}  // namespace weft::topo
