// SPDX-License-Identifier: Apache-2.0
#include "sim/network.h"

#include <gtest/gtest.h>

#include "fabric_job.h"
#include "sim/symmetry.h"

namespace weft::sim {
namespace {

constexpr const char* kDl1 =
    "nodes 2 ranks 4\nmesh all gbit 80 us 3\nrail a gbit 40 us 20 ranks 0-1\n"
    "rail b gbit 40 us 20 ranks 2-3\n";

std::vector<std::string> namesOf(const Network& network, const Route& route) {
  std::vector<std::string> names;
  for (const Use& use : route.uses) names.push_back(network.nameOf(use.resource));
  return names;
}

using Names = std::vector<std::string>;

TEST(Network, JoinsByCableInsideAndByRailsBetween) {
  const Network network = networkOf(kDl1);
  Route route;
  ASSERT_TRUE(network.findRoute(0, 3, &route));
  EXPECT_EQ(namesOf(network, route), (Names{"node0 0->3"}));
  EXPECT_EQ(route.latencyNs, 3000);
  ASSERT_TRUE(network.findRoute(3, 0, &route));
  EXPECT_EQ(namesOf(network, route), (Names{"node0 3->0"}));
  ASSERT_TRUE(network.findRoute(1, 6, &route));
  EXPECT_EQ(namesOf(network, route), (Names{"node0 a out", "node1 b in"}));
  EXPECT_EQ(route.latencyNs, 20000);
  EXPECT_EQ(network.rateOf(route.uses[0].resource), 5);  // bytes a nanosecond
}

TEST(Network, TakesTheFasterOfCableAndMemory) {
  const char* const memory = "nodes 1 ranks 2\nmemory gbit 100 us 1\nmesh 0-1 gbit ";
  EXPECT_TRUE(networkOf(std::string(memory) + "80 us 3\n").joinsByMemory(0, 1));
  EXPECT_FALSE(networkOf(std::string(memory) + "200 us 3\n").joinsByMemory(0, 1));
}

TEST(Network, APairWithoutItsCableGoesByRails) {
  const Network network = networkOf(kDl1, {{1, "0-3", 0}});
  Route route;
  ASSERT_TRUE(network.findRoute(4, 7, &route));
  EXPECT_EQ(namesOf(network, route), (Names{"node1 a out", "node1 b in"}));
  ASSERT_TRUE(network.findRoute(0, 3, &route));
  EXPECT_EQ(namesOf(network, route), (Names{"node0 0->3"}));
}

TEST(Network, ARankOnTwoRailsSendsOverBoth) {
  const Network network =
      networkOf("nodes 2 ranks 1\nrail a gbit 40 us 1 ranks 0\nrail b gbit 80 us 2 ranks 0\n");
  Route route;
  ASSERT_TRUE(network.findRoute(0, 1, &route));
  ASSERT_EQ(route.uses.size(), 4u);
  EXPECT_DOUBLE_EQ(route.uses[0].weight, 1.0 / 3);
  EXPECT_DOUBLE_EQ(route.uses[1].weight, 2.0 / 3);
  EXPECT_EQ(route.latencyNs, 2000);
}

TEST(Network, WhatIsNotConnectedIsSaid) {
  const auto why = [](const std::string& lines, const std::vector<Change>& changes = {}) {
    return networkOf(lines, changes).checkConnected().text();
  };
  EXPECT_EQ(why(kDl1), "");
  EXPECT_NE(why("nodes 2 ranks 2\nmesh all gbit 1 us 1\n")
                .find("rank 0 of node node0 reaches no other node"),
            std::string::npos);
  EXPECT_NE(why("nodes 1 ranks 3\nmesh 0-1 gbit 1 us 1\nmesh 1-2 gbit 1 us 1\n")
                .find("ranks 0 and 2 of node node0 are joined by no link, memory or rails"),
            std::string::npos);
  EXPECT_NE(why(kDl1, {{1, "a", 0}}).find("rank 0 of node node1 reaches no other node"),
            std::string::npos);
}

TEST(Network, ChangesOfWhatIsNotThereAreRefused) {
  const auto why = [](const Change& change) {
    Network network;
    return Network::make(fabricOf(kDl1), {change}, 0, &network).text();
  };
  EXPECT_EQ(why({2, "a", 0}), "there is no node 2: the nodes are 0 to 1");
  for (const char* link : {"c", "0-9", "1-1", "x-1"})
    EXPECT_NE(why({0, link, 0}).find("is no mesh link of a node, such as 0-1, and no rail"),
              std::string::npos)
        << link;
}

TEST(Network, PortsAreAllThatLeadsOut) {
  const Network network = networkOf(kDl1, {{0, "a", 0.5}});
  EXPECT_EQ(network.portsOfRank(0).out, 3 * 10 + 2.5);
  EXPECT_EQ(network.portsOfRank(7).in, 3 * 10 + 5);
  EXPECT_EQ(network.portsOfNode(0).out, 7.5);
  EXPECT_EQ(network.portsOfNode(1).in, 10);
}

TEST(Symmetry, IsThatOfTheFabric) {
  const std::vector<Symmetry> all = Symmetry::of(networkOf(kDl1));
  ASSERT_EQ(all.size(), 2u);  // ranks by two, and by four: nodes alone
  EXPECT_EQ(all[0].classes(), 2u);
  EXPECT_EQ(all[0].shifts(), 4u);
  EXPECT_EQ(all[1].classes(), 4u);
  EXPECT_TRUE(Symmetry::of(networkOf(kDl1, {{0, "a", 0.5}})).empty());
  EXPECT_TRUE(
      Symmetry::of(networkOf("nodes a ranks 2\nnodes b ranks 1\nrail r gbit 1 us 1 ranks all\n"))
          .empty());
}

TEST(Symmetry, SeesPeersFromTheFirstOfAClass) {
  const Symmetry symmetry = Symmetry::of(networkOf(kDl1))[0];
  for (std::uint32_t shift = 0; shift < symmetry.shifts(); ++shift)
    for (std::uint32_t one = 0; one < symmetry.classes(); ++one) {
      const std::uint32_t rank = symmetry.moved(one, shift);
      EXPECT_EQ(symmetry.classOf(rank), one);
      EXPECT_EQ(symmetry.seenFrom(rank, rank), one);
    }
  EXPECT_EQ(symmetry.seenFrom(6, 7), 1u);
  EXPECT_EQ(symmetry.seenFrom(6, 4), 2u);
  EXPECT_EQ(symmetry.seenFrom(6, 0), 6u);
}

// Two ranks of a node are one in the simulation, so its memory carries two for each.
TEST(Symmetry, AResourceCarriesWhatAllShiftsPutOnIt) {
  const Network network = networkOf(kDl1);
  const Symmetry symmetry = Symmetry::of(network)[0];
  const Use memory = symmetry.folded({network.memoryOf(1), 1});
  EXPECT_EQ(memory.resource, network.memoryOf(0));
  EXPECT_EQ(memory.weight, 2);
  Route route;
  ASSERT_TRUE(network.findRoute(6, 1, &route));
  const Use out = symmetry.folded(route.uses[0]);
  EXPECT_EQ(network.nameOf(out.resource), "node0 a out");
  EXPECT_EQ(out.weight, 1);
}

}  // namespace
}  // namespace weft::sim
