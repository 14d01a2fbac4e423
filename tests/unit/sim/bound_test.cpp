// SPDX-License-Identifier: Apache-2.0
#include "sim/bound.h"

#include <gtest/gtest.h>

#include "fabric_job.h"

namespace weft::sim {
namespace {

using enum schedule::Collective;

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
