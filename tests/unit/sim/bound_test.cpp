// SPDX-License-Identifier: Apache-2.0
#include "sim/bound.h"

#include <gtest/gtest.h>

#include "fabric_job.h"
#include "sim/max_flow.h"

namespace weft::sim {
namespace {

using enum schedule::Collective;

TEST(MaxFlow, IsTheTextbooks) {
  MaxFlow flow(6);  // Cormen et al., figure 26.1: 23
  flow.addEdge(0, 1, 16);
  flow.addEdge(0, 2, 13);
  flow.addEdge(1, 3, 12);
  flow.addEdge(2, 1, 4);
  flow.addEdge(3, 2, 9);
  flow.addEdge(2, 4, 14);
  flow.addEdge(4, 3, 7);
  flow.addEdge(3, 5, 20);
  flow.addEdge(4, 5, 4);
  EXPECT_DOUBLE_EQ(flow.run(0, 5), 23);
  EXPECT_DOUBLE_EQ(flow.run(0, 5), 23);
}

TEST(Bound, OfAFullMesh) {
  const Network network = networkOf("nodes 1 ranks 4\nmesh all gbit 80 us 3\n");
  EXPECT_DOUBLE_EQ(boundOf(network, AllReduce, 0, 4000).cutNs, 2 * 3.0 / 4 * 4000 / 30);
  EXPECT_DOUBLE_EQ(boundOf(network, AllGather, 0, 4000).cutNs, 3000.0 / 30);
  EXPECT_NEAR(boundOf(network, AllGather, 0, 4000).flowNs, 100, 1e-6);
  EXPECT_DOUBLE_EQ(boundOf(network, Broadcast, 0, 4000).cutNs, 4000.0 / 30);
  EXPECT_DOUBLE_EQ(boundOf(network, AllToAll, 0, 4000).cutNs, 3000.0 / 30);
  EXPECT_EQ(boundOf(network, Barrier, 0, 0).ns(), 0);
}

TEST(Bound, OfNodesIsThatOfTheirRails) {
  const Network network = networkOf(
      "nodes 4 ranks 8\nmesh all gbit 100 us 3\nrail a gbit 100 us 20 ranks 0-3\n"
      "rail b gbit 100 us 20 ranks 4-7\n");
  const double node = 25;  // bytes a nanosecond
  EXPECT_DOUBLE_EQ(boundOf(network, AllReduce, 0, 1e6).cutNs, 2 * 3.0 / 4 * 1e6 / node);
  EXPECT_DOUBLE_EQ(boundOf(network, AllGather, 0, 1e6).cutNs, 3.0 / 4 * 1e6 / node);
  EXPECT_NEAR(boundOf(network, AllGather, 0, 1e6).flowNs, 3.0 / 4 * 1e6 / node, 1e-3);
  EXPECT_DOUBLE_EQ(boundOf(network, Gather, 9, 1e6).cutNs, 3.0 / 4 * 1e6 / node);
}

// Two pairs of ranks that one thin cable joins: no rank's ports nor any node's say so, but a cut does.
TEST(Bound, FlowsSeeWhatNoPortDoes) {
  const Network network = networkOf(
      "nodes 1 ranks 4\nmesh 0-1 gbit 800 us 1\nmesh 2-3 gbit 800 us 1\nmesh 1-2 gbit 8 us 1\n");
  const Bound bound = boundOf(network, AllGather, 0, 4000);
  EXPECT_LT(bound.cutNs, 100);
  EXPECT_NEAR(bound.flowNs, 2000, 1);  // two blocks of 1000 bytes over 1 byte a nanosecond
}

TEST(Bound, SharedMemoryIsNone) {
  const Network network = networkOf("nodes 1 ranks 4\nmemory gbit 100 us 1\n");
  EXPECT_EQ(boundOf(network, AllReduce, 0, 1e6).ns(), 0);
  EXPECT_EQ(boundOf(network, AllGather, 0, 1e6).ns(), 0);
}

}  // namespace
}  // namespace weft::sim
