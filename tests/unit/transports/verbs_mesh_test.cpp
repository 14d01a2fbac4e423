// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/mesh.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <time.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace weft::verbs {
namespace {

Gid gidOf(const std::string& address) {
  Gid gid{};
  if (::inet_pton(AF_INET6, address.c_str(), gid.data()) == 1) return gid;
  gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  EXPECT_EQ(::inet_pton(AF_INET, address.c_str(), gid.data() + 12), 1) << address;
  return gid;
}

PortInfo portOf(const std::string& device, const std::string& address, std::uint32_t prefix) {
  PortInfo info;
  std::memcpy(info.device, device.data(), device.size());
  info.port = 1;
  info.mtu = 4096;
  info.gid = gidOf(address);
  info.prefixBits = prefix + (kindOf(info.gid) == GidKind::Ipv4 ? 96 : 0);
  info.linkLocal = gidOf(text("fe80::", device[1] - '0', ":", device.back() - '0'));
  info.onNetwork = 1;
  return info;
}

Fabric emptyFabric(std::uint32_t ranks) {
  Fabric fabric;
  fabric.ports.resize(ranks);
  fabric.wanted.assign(ranks, std::vector<bool>(ranks, true));
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    fabric.wanted[rank][rank] = false;
    fabric.names.push_back({static_cast<int>(rank), ""});
    fabric.hosts.push_back(text("host", rank));
  }
  return fabric;
}

// A cable for each pair i < j, from device c<i>p<j> to c<j>p<i>, with a /31 of its own.
Fabric mesh(std::uint32_t ranks) {
  Fabric fabric = emptyFabric(ranks);
  int cable = 0;
  for (std::uint32_t i = 0; i < ranks; ++i)
    for (std::uint32_t j = i + 1; j < ranks; ++j, ++cable) {
      fabric.ports[i].push_back(portOf(text('c', i, 'p', j), text("10.0.", cable, ".0"), 31));
      fabric.ports[j].push_back(portOf(text('c', j, 'p', i), text("10.0.", cable, ".1"), 31));
    }
  return fabric;
}

std::string deviceAt(const Fabric& fabric, std::uint32_t rank, const Edge& edge) {
  return fabric.ports[rank][edge.port[edge.rank[0] == rank ? 0 : 1]].device;
}

// The wiring of all ranks, each edge once. Each rank finds its own alone, so both ends must have found
// it alike, and edges of a pair in the same order.
template <class Find>
Status wireAll(const Fabric& fabric, Find find, Wiring* out) {
  out->clear();
  Wiring seenFromAbove;
  for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank) {
    Wiring mine;
    WEFT_TRY(find(rank, &mine));
    for (const Edge& edge : mine) {
      EXPECT_NE(edge.rank[0] == rank, edge.rank[1] == rank);
      (edge.rank[0] == rank ? *out : seenFromAbove).push_back(edge);
    }
  }
  const auto byPair = [](const Edge& edge) { return edge.rank; };
  std::ranges::stable_sort(seenFromAbove, {}, byPair);
  EXPECT_EQ(*out, seenFromAbove);
  return {};
}

Status wireBySubnet(const Fabric& fabric, Wiring* out) {
  return wireAll(
      fabric, [&](auto rank, Wiring* mine) { return wireBySubnet(fabric, rank, mine); }, out);
}
Status wireByCables(const Fabric& fabric, const std::vector<Cable>& cables, Wiring* out) {
  return wireAll(
      fabric, [&](auto rank, Wiring* mine) { return wireByCables(fabric, rank, cables, mine); },
      out);
}

Wiring edgesOf(const Wiring& wiring, std::uint32_t rank) {
  Wiring edges = wiring;
  std::erase_if(edges,
                [&](const Edge& edge) { return edge.rank[0] != rank && edge.rank[1] != rank; });
  return edges;
}
void wireByHello(const Fabric& fabric, AllHeard heard, Wiring* wiring) {
  tidy(fabric, &heard);
  const Wiring before = *wiring;
  EXPECT_TRUE(wireAll(
                  fabric,
                  [&](auto rank, Wiring* mine) {
                    *mine = edgesOf(before, rank);
                    wireByHello(fabric, rank, heard, mine);
                    return Status();
                  },
                  wiring)
                  .ok());
}

std::vector<Holes> holesOf(const Fabric& fabric, const Wiring& wiring) {
  std::vector<Holes> holes;
  for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank)
    holes.push_back(holesOf(fabric, rank, edgesOf(wiring, rank)));
  return holes;
}
bool isWhole(const Fabric& fabric, const Wiring& wiring) {
  return isWhole(holesOf(fabric, wiring));
}
Status checkWhole(const Fabric& fabric, const Wiring& wiring, const std::string& how) {
  return checkWhole(fabric, holesOf(fabric, wiring), how);
}

// What each rank says of its edges.
template <class Say>
std::string said(const Fabric& fabric, const Wiring& wiring, Say say) {
  std::vector<std::string> all;
  for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank)
    if (std::string words = say(rank, edgesOf(wiring, rank)); !words.empty())
      all.push_back(std::move(words));
  return joined(all, ", ", [](const std::string& one) { return one; });
}
std::string mtuMismatches(const Fabric& fabric, const Wiring& wiring) {
  return said(fabric, wiring,
              [&](auto rank, const Wiring& mine) { return mtuMismatches(fabric, rank, mine); });
}
std::string crossings(const Fabric& fabric, const Wiring& wiring, AllHeard heard) {
  tidy(fabric, &heard);
  return said(fabric, wiring,
              [&](auto rank, const Wiring& mine) { return crossings(fabric, rank, mine, heard); });
}

void expectMesh(const Fabric& fabric, const Wiring& wiring) {
  const std::uint32_t ranks = fabric.ranks();
  EXPECT_EQ(wiring.size(), ranks * (ranks - 1) / 2);
  for (const Edge& edge : wiring) {
    const auto [a, b] = edge.rank;
    EXPECT_EQ(deviceAt(fabric, a, edge), text('c', a, 'p', b));
    EXPECT_EQ(deviceAt(fabric, b, edge), text('c', b, 'p', a));
  }
  EXPECT_TRUE(isWhole(fabric, wiring));
}

bool has(const std::string& words, const std::string& part) {
  return words.find(part) != std::string::npos;
}
#define EXPECT_HAS(words, part) EXPECT_TRUE(has(words, part)) << words

std::vector<Cable> cablesOf(const std::string& lines) {
  std::vector<Cable> cables;
  const Status status = parseCables(lines, "mesh.txt", &cables);
  EXPECT_TRUE(status.ok()) << status.text();
  return cables;
}

// ---- subnets ------------------------------------------------------------------------------------

TEST(VerbsMesh, SubnetsTellWhoReachesWhom) {
  for (const std::uint32_t ranks : {2u, 4u, 8u}) {
    const Fabric fabric = mesh(ranks);
    Wiring wiring;
    ASSERT_TRUE(wireBySubnet(fabric, &wiring).ok());
    expectMesh(fabric, wiring);
    EXPECT_TRUE(checkWhole(fabric, wiring, "subnets").ok());
  }
}

TEST(VerbsMesh, TwoPortsInOneSubnetAreAnError) {
  Fabric fabric = mesh(4);
  fabric.ports[2][0] = portOf("c2p0", "10.0.3.8", 24);
  fabric.ports[2][1] = portOf("c2p1", "10.0.3.9", 24);
  Wiring wiring;
  const Status status = wireBySubnet(fabric, &wiring);
  EXPECT_EQ(status.code(), Code::InvalidUsage);
  EXPECT_HAS(status.text(), "c2p0:1 of rank 2 (10.0.3.8/24) and c2p1:1 (10.0.3.9/24)");
  EXPECT_HAS(status.text(), "fix:");
}

TEST(VerbsMesh, ASwitchJoinsAllToAll) {
  Fabric fabric = emptyFabric(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    for (std::uint32_t port = 0; port < 2; ++port)
      fabric.ports[rank].push_back(
          portOf(text('c', rank, 's', port), text("10.0.0.", 1 + 2 * rank + port), 24));
  fabric.ports[2].pop_back();
  Wiring wiring;
  ASSERT_TRUE(wireBySubnet(fabric, &wiring).ok());
  EXPECT_EQ(wiring.size(), 4u);  // two rails between 0 and 1
  for (const Edge& edge : wiring) EXPECT_EQ(edge.port[0], edge.port[1]);
  EXPECT_TRUE(isWhole(fabric, wiring));
}

TEST(VerbsMesh, SeveralSubnetsOfAPairAreRails) {
  Fabric fabric = emptyFabric(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    for (std::uint32_t rail = 0; rail < 2; ++rail)
      fabric.ports[rank].push_back(
          portOf(text('c', rank, 'r', rail), text("10.0.", rail, ".", 1 + rank), 24));
  Wiring wiring;
  ASSERT_TRUE(wireBySubnet(fabric, &wiring).ok());
  EXPECT_EQ(wiring.size(), 6u);
  for (const Edge& edge : wiring) EXPECT_EQ(edge.port[0], edge.port[1]);
}

TEST(VerbsMesh, OnlyWantedPairsAreWired) {
  Fabric fabric = mesh(4);
  fabric.wanted.assign(4, std::vector<bool>(4, false));
  fabric.wanted[1][3] = true;  // one side is enough
  Wiring wiring;
  ASSERT_TRUE(wireBySubnet(fabric, &wiring).ok());
  ASSERT_EQ(wiring.size(), 1u);
  EXPECT_EQ(wiring[0].rank, (std::array{1u, 3u}));
  EXPECT_TRUE(isWhole(fabric, wiring));
}

// ---- holes --------------------------------------------------------------------------------------

std::string holeOf(const Fabric& fabric) {
  Wiring wiring;
  const Status status = wireBySubnet(fabric, &wiring);
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_FALSE(isWhole(fabric, wiring));
  return checkWhole(fabric, wiring, "subnets and hello").text();
}

TEST(VerbsMesh, AMissingEdgeNamesBothEnds) {
  Fabric fabric = mesh(4);
  fabric.ports[0][2].state = PortState::Down;
  fabric.ports[3][0].state = PortState::Down;
  const std::string why = holeOf(fabric);
  EXPECT_HAS(why, "no edge between rank 0 and rank 3");
  EXPECT_HAS(why, "c0p3:1 is down");
  EXPECT_HAS(why, "c3p0:1 is down");
  EXPECT_HAS(why, "fix:");
}

TEST(VerbsMesh, SubnetsThatDoNotMatchAreShown) {
  Fabric fabric = mesh(2);
  fabric.ports[1][0] = portOf("c1p0", "10.9.0.1", 31);
  EXPECT_HAS(holeOf(fabric), "c1p0:1 (10.9.0.1/31)");
  fabric.ports[1][0] = portOf("c1p0", "10.0.0.1", 24);
  EXPECT_HAS(holeOf(fabric), "c1p0:1 (10.0.0.1/24)");
  fabric.ports[1][0].prefixBits = 0;
  EXPECT_HAS(holeOf(fabric), "10.0.0.1 of unknown prefix");
}

TEST(VerbsMesh, APortWithoutAGidSaysSo) {
  Fabric fabric = mesh(3);
  fabric.ports[1][0].gid = {};
  fabric.ports[1][0].state = PortState::NoGid;
  EXPECT_HAS(holeOf(fabric), "c1p0:1 has no RoCE v2 GID that WEFT_ROCE_GID allows");
}

TEST(VerbsMesh, ARankWithoutPortsSaysSo) {
  Fabric fabric = mesh(3);
  fabric.ports[2].clear();
  const std::string why = holeOf(fabric);
  EXPECT_HAS(why, "rank 2: no RDMA port");
  EXPECT_HAS(why, "nor between 1 other pairs");
}

TEST(VerbsMesh, MtuMismatchesAreNamed) {
  Fabric fabric = mesh(3);
  Wiring wiring;
  ASSERT_TRUE(wireBySubnet(fabric, &wiring).ok());
  EXPECT_EQ(mtuMismatches(fabric, wiring), "");
  fabric.ports[1][1].mtu = 1024;
  EXPECT_EQ(mtuMismatches(fabric, wiring),
            "c1p2:1 of rank 1 has MTU 1024 and c2p1:1 of rank 2 4096");
}

// ---- cables -------------------------------------------------------------------------------------

constexpr const char* kMesh3 =
    "# a mesh of three\n"
    "c0p1:1 c1p0:1\n"
    "\n"
    "2/c2p0  host0/c0p2:1   # the other way round\n"
    "c1p2 c2p1\n";

TEST(VerbsMesh, CablesOfAFile) {
  Fabric fabric = mesh(3);
  for (auto& ports : fabric.ports)
    for (PortInfo& port : ports) port.prefixBits = 0;  // subnets tell nothing
  Wiring wiring;
  ASSERT_TRUE(wireByCables(fabric, cablesOf(kMesh3), &wiring).ok());
  expectMesh(fabric, wiring);
}

TEST(VerbsMesh, CablesOfOthersAreNotOurs) {
  const Fabric fabric = mesh(2);
  Wiring wiring;
  ASSERT_TRUE(wireByCables(fabric, cablesOf(kMesh3), &wiring).ok());
  EXPECT_EQ(wiring.size(), 1u);
}

TEST(VerbsMesh, ACableThatTheFileLacksIsAHole) {
  const Fabric fabric = mesh(3);
  Wiring wiring;
  ASSERT_TRUE(wireByCables(fabric, cablesOf("c0p1 c1p0\nc1p2 c2p1\n"), &wiring).ok());
  EXPECT_HAS(checkWhole(fabric, wiring, "WEFT_MESH_FILE").text(),
             "no edge between rank 0 and rank 2 by WEFT_MESH_FILE");
}

std::string cableError(const Fabric& fabric, const std::string& lines) {
  Wiring wiring;
  const Status status = wireByCables(fabric, cablesOf(lines), &wiring);
  EXPECT_EQ(status.code(), Code::InvalidUsage);
  return status.text();
}

TEST(VerbsMesh, WrongTables) {
  const Fabric fabric = mesh(3);
  EXPECT_HAS(cableError(fabric, "c0p1 c0p2\n"), "line 1, c0p1:1 c0p2:1: both ends are of rank 0");
  EXPECT_HAS(cableError(fabric, "c0p1 c1p0\nc1p0 c2p1\n"),
             "line 2, c1p0:1 c2p1:1: c1p0:1 of rank 1 has another cable already");
  Fabric alike = mesh(2);
  std::memcpy(alike.ports[1][0].device, "c0p1", 4);  // as on two hosts of one kind
  EXPECT_HAS(cableError(alike, "c0p1 c0p1\n"), "may be that of rank 0 or of rank 1");
  Wiring wiring;
  ASSERT_TRUE(wireByCables(alike, cablesOf("host0/c0p1 host1/c0p1\n"), &wiring).ok());
  EXPECT_EQ(wiring.size(), 1u);
}

TEST(VerbsMesh, FilesThatAreNone) {
  std::vector<Cable> cables;
  for (const char* lines : {"c0p1\n", "c0p1 c1p0 c2p0\n", "c0p1:x c1p0\n", "c0p1:0 c1p0\n",
                            "/c0p1 c1p0\n", "0/ c1p0\n", "c0p1: c1p0\n"}) {
    const Status status = parseCables(std::string("# one\n") + lines, "mesh.txt", &cables);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << lines;
    EXPECT_HAS(status.text(), "mesh.txt line 2");
    EXPECT_HAS(status.text(), "fix:");
  }
  EXPECT_HAS(parseCables("# none\n", "mesh.txt", &cables).text(), "names no cable");
  EXPECT_HAS(readCables("/nonexistent/mesh.txt", &cables).text(), "cannot be read");
}

// ---- hello --------------------------------------------------------------------------------------

// Link-local addresses only, so that subnets tell nothing.
Fabric bareMesh(std::uint32_t ranks) {
  Fabric fabric = mesh(ranks);
  for (auto& ports : fabric.ports)
    for (PortInfo& port : ports) {
      port.gid = port.linkLocal;
      port.prefixBits = 64;
    }
  return fabric;
}

// As the cables of mesh() carry it.
AllHeard heardIn(const Fabric& fabric) {
  Wiring wiring;
  EXPECT_TRUE(wireBySubnet(mesh(fabric.ranks()), &wiring).ok());
  AllHeard heard(fabric.ranks());
  for (const Edge& edge : wiring)
    for (const std::size_t side : {0u, 1u})
      heard[edge.rank[side]].push_back({edge.port[side], edge.rank[1 - side], edge.port[1 - side]});
  return heard;
}

TEST(VerbsMesh, HelloTellsWhereSubnetsDoNot) {
  const Fabric fabric = bareMesh(4);
  Wiring wiring;
  ASSERT_TRUE(wireBySubnet(fabric, &wiring).ok());
  EXPECT_TRUE(wiring.empty());
  wireByHello(fabric, heardIn(fabric), &wiring);
  expectMesh(fabric, wiring);
  for (const Edge& edge : wiring) EXPECT_TRUE(edge.linkLocal);
}

TEST(VerbsMesh, HelloFillsOnlyHoles) {
  Fabric fabric = mesh(3);
  fabric.ports[0][1] = bareMesh(3).ports[0][1];
  Wiring wiring;
  ASSERT_TRUE(wireBySubnet(fabric, &wiring).ok());
  EXPECT_EQ(wiring.size(), 2u);
  wireByHello(fabric, heardIn(fabric), &wiring);
  expectMesh(fabric, wiring);
  for (const Edge& edge : wiring) EXPECT_EQ(edge.linkLocal, edge.rank == (std::array{0u, 2u}));
}

TEST(VerbsMesh, HelloOfOneWayIsNoEdge) {
  const Fabric fabric = bareMesh(2);
  AllHeard heard = heardIn(fabric);
  heard[1].clear();
  Wiring wiring;
  wireByHello(fabric, heard, &wiring);
  EXPECT_TRUE(wiring.empty());
}

// Whoever knows what all have heard knows whether somebody may need more time; ports without a network
// need none.
TEST(VerbsMesh, APortThatHearsNobodyIsSilent) {
  Fabric fabric = bareMesh(3);
  AllHeard heard = heardIn(fabric);
  EXPECT_FALSE(isAnySilent(fabric, heard));
  const Heard last = heard[2].back();
  heard[2].pop_back();
  EXPECT_TRUE(isAnySilent(fabric, heard));
  fabric.ports[2][last.at].onNetwork = 0;
  EXPECT_FALSE(isAnySilent(fabric, heard));
}

TEST(VerbsMesh, HelloOverASwitchPairsPortsInOrder) {
  Fabric fabric = emptyFabric(2);
  AllHeard heard(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    for (std::uint32_t port = 0; port < 2; ++port) {
      fabric.ports[rank].push_back(
          portOf(text('c', rank, 's', port), text("fe80::", rank, ":", port + 1), 64));
      for (std::uint32_t other = 0; other < 2; ++other)
        heard[rank].push_back({port, 1 - rank, other});
    }
  Wiring wiring;
  wireByHello(fabric, heard, &wiring);
  ASSERT_EQ(wiring.size(), 2u);
  for (const Edge& edge : wiring) EXPECT_EQ(edge.port[0], edge.port[1]);
}

TEST(VerbsMesh, CrossedCablesNameBothEnds) {
  const Fabric fabric = mesh(3);
  Wiring wiring;
  ASSERT_TRUE(wireBySubnet(fabric, &wiring).ok());
  EXPECT_EQ(crossings(fabric, wiring, heardIn(fabric)), "");
  // The cables of c1p0 and c2p0 are swapped at those ends.
  AllHeard heard = heardIn(fabric);
  heard[0] = {{0, 2, 0}, {1, 1, 0}};
  heard[1][0] = {0, 0, 1};
  heard[2][0] = {0, 0, 0};
  const std::string words = crossings(fabric, wiring, heard);
  EXPECT_HAS(words, "c0p1:1 of rank 0 is cabled to c2p0:1 of rank 2, not to c1p0:1 of rank 1");
  EXPECT_HAS(words, "c1p0:1 of rank 1 is cabled to c0p2:1 of rank 0, not to c0p1:1 of rank 0");
}

TEST(VerbsMesh, LinesShowHoles) {
  Fabric fabric = mesh(3);
  fabric.ports[0][1].state = PortState::Down;
  fabric.wanted[1][2] = fabric.wanted[2][1] = false;
  Wiring wiring;
  ASSERT_TRUE(wireBySubnet(fabric, &wiring).ok());
  EXPECT_EQ(lineOf(fabric, 0, edgesOf(wiring, 0)), "verbs wiring, rank 0: 0=self 1=c0p1:1 2=NONE");
  EXPECT_EQ(lineOf(fabric, 1, edgesOf(wiring, 1)), "verbs wiring, rank 1: 0=c1p0:1 1=self 2=-");
}

TEST(VerbsMesh, HellosThatNameNoPortAreNotHeard) {
  const Fabric fabric = bareMesh(2);
  AllHeard heard = {{{0, 1, 0}, {0, 9, 0}, {0, 1, 9}, {9, 1, 0}}, {{0, 0, 0}}};
  tidy(fabric, &heard);
  EXPECT_EQ(heard[0], (std::vector<Heard>{{0, 1, 0}}));
  EXPECT_EQ(heard[1].size(), 1u);
}

// ---- a thousand ranks -------------------------------------------------------------------------------

std::string gidText(std::uint32_t rail, std::uint32_t rank) {
  return text("10.", rail, ".", rank / 256, ".", rank % 256);
}

// Hosts of `perHost` ranks with `rails` ports each, every rail a subnet of its own, or all in one.
Fabric cluster(std::uint32_t ranks, std::uint32_t perHost, std::uint32_t rails, bool oneSwitch) {
  Fabric fabric = emptyFabric(ranks);
  for (std::uint32_t a = 0; a < ranks; ++a)
    for (std::uint32_t rail = 0; rail < rails; ++rail)
      fabric.ports[a].push_back(
          portOf(text('m', "lx", rail), gidText(rail, a), oneSwitch ? 8 : 16));
  for (std::uint32_t a = 0; a < ranks; ++a)
    for (std::uint32_t b = 0; b < ranks; ++b) fabric.wanted[a][b] = a / perHost != b / perHost;
  return fabric;
}

double processorSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// All that a rank computes before it opens connections: it took minutes when it was of the order of
// n^4. The bound leaves room for sanitizers.
void expectWiredSoon(const Fabric& fabric, std::uint32_t rank, std::uint32_t edges) {
  const double before = processorSeconds();
  Wiring wiring;
  ASSERT_TRUE(wireBySubnet(fabric, rank, &wiring).ok());
  EXPECT_EQ(wiring.size(), edges);
  EXPECT_EQ(holesOf(fabric, rank, wiring).count, 0u);
  EXPECT_EQ(mtuMismatches(fabric, rank, wiring), "");
  EXPECT_FALSE(lineOf(fabric, rank, wiring).empty());
  const double took = processorSeconds() - before;
  testing::Test::RecordProperty("milliseconds", static_cast<int>(1000 * took));
  EXPECT_LT(took, 10.0);
}

TEST(VerbsMesh, AThousandRanksOfOneHostEach) {
  expectWiredSoon(cluster(1024, 1, 1, true), 511, 1023);
}

TEST(VerbsMesh, AThousandRanksOfEightRails) {
  expectWiredSoon(cluster(1024, 8, 8, false), 511, 8 * 1016);
}

TEST(VerbsMesh, AThousandRanksByHello) {
  const Fabric fabric = cluster(1024, 8, 1, false);
  AllHeard heard(fabric.ranks());
  for (std::uint32_t a = 0; a < fabric.ranks(); ++a)
    for (std::uint32_t b = fabric.ranks(); b-- > 0;)
      if (a != b) heard[a].push_back({0, b, 0});
  const double before = processorSeconds();
  tidy(fabric, &heard);
  Wiring wiring;
  wireByHello(fabric, 511, heard, &wiring);
  EXPECT_EQ(wiring.size(), 1016u);
  EXPECT_EQ(crossings(fabric, 511, wiring, heard), "");
  EXPECT_LT(processorSeconds() - before, 10.0);
}

TEST(VerbsMesh, OfManyEdgesSomeAreNamed) {
  Fabric fabric = cluster(64, 1, 1, true);
  fabric.ports[0][0].mtu = 1024;
  Wiring wiring;
  ASSERT_TRUE(wireBySubnet(fabric, 0, &wiring).ok());
  EXPECT_HAS(mtuMismatches(fabric, 0, wiring), "of rank 8 4096, and 55 more");
}

}  // namespace
}  // namespace weft::verbs
