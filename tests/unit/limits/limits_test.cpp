// SPDX-License-Identifier: Apache-2.0
#include "perf/limits/limits.h"

#include <gtest/gtest.h>

#include <bit>

#include "../plan/sample_machine.h"

namespace weft::tools {
namespace {

// Of 8 ranks a host, and of one.
class LimitsOf : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(LimitsOf, AreKeptToFourThousandRanks) {
  for (const std::uint32_t ranks : {64u, 128u, 256u, 1024u, 4096u}) {
    const Limits limits = limitsOf(ranks, GetParam(), plan::sampleMachine());
    ASSERT_EQ(limits.refused, "");
    // From some hundreds of ranks on, no rank sends to all others for a few bytes.
    const auto rounds = static_cast<std::uint64_t>(std::bit_width(ranks - 1));
    const std::uint64_t few = ranks < 1024 ? ranks : 2 * rounds + 2;
    EXPECT_LE(limits.barrier.messages, few) << ranks;
    EXPECT_LE(limits.shortSum.remote, few) << ranks;
    EXPECT_LE(limits.shortSum.messages, few + 2 * GetParam()) << ranks;
    EXPECT_LE(limits.longSum.sentBytes, 4 * kLongBytes) << ranks;
    for (const CallLimits& call : {limits.barrier, limits.shortSum, limits.longSum})
      EXPECT_LE(call.planBytes, 600 * ranks) << ranks << ": " << call.algorithm;
    EXPECT_LE(limits.windowBytes, ranks * (std::size_t{4} << 20)) << ranks;
    EXPECT_EQ(limits.rootConnections, ranks / GetParam()) << ranks;
    // Three all-gathers, which the model lets everybody send to everybody at some sizes.
    EXPECT_LE(limits.split.messages, 3u * (ranks - 1)) << ranks;
    EXPECT_LE(limits.split.remote, limits.split.messages) << ranks;
    EXPECT_EQ(limits.further.threads + limits.further.descriptors, 0u);
    EXPECT_EQ(limits.firstOfRoot.threads, 2u);
    EXPECT_LE(limits.firstOfRoot.descriptors, ranks / GetParam() + GetParam() + 8);
    EXPECT_LE(limits.rootRoundBytes, limits.rootConnections * ranks * 50) << ranks;
  }
}

INSTANTIATE_TEST_SUITE_P(RanksOfAHost, LimitsOf, ::testing::Values(1u, 8u));

// Three descriptors a peer, and a socket of each at the first rank.
TEST(Limits, DescriptorsOfAThousandRanksOnAHostAreFew) {
  const Limits limits = limitsOf(1024, 1024, plan::sampleMachine());
  ASSERT_EQ(limits.refused, "");
  EXPECT_EQ(limits.keptDescriptors, 3u * 1023);
  EXPECT_LE(limits.mostDescriptors, 4u * 1024 + 16);
  EXPECT_EQ(limits.further.descriptors + limits.firstOfRoot.descriptors, 0u);
  EXPECT_LE(limits.windowBytes, std::size_t{2} << 30);
  EXPECT_LE(limits.createdBytes, std::size_t{2} << 20);
}

// Half of what a rank of a mesh exchanges crosses, and that has a column where it can be.
TEST(Limits, WhatCrossesBetweenNumaNodesIsCounted) {
  const Limits one = limitsOf(8, 8, plan::sampleMachine());
  const Limits two = limitsOf(8, 8, plan::sampleMachine(), 2);
  EXPECT_EQ(one.longSum.farBytes, 0U);
  EXPECT_GT(two.longSum.farBytes, kLongBytes / 2);
  EXPECT_LT(two.longSum.farBytes, 2 * kLongBytes);
  EXPECT_EQ(tableOf({one}).find("NUMA"), std::string::npos);
  EXPECT_NE(tableOf({one, two}).find("| MiB between NUMA nodes |"), std::string::npos);
}

TEST(Limits, ColumnsHaveACellForEachNumberOfRanks) {
  const std::vector<Limits> rows{limitsOf(8, 8, plan::sampleMachine()),
                                 limitsOf(65536, 8, plan::sampleMachine())};
  const std::string table = tableOf(rows);
  EXPECT_NE(table.find("| 8 |"), std::string::npos) << table;
  EXPECT_NE(table.find("| 65536 | none: "), std::string::npos) << table;
}

}  // namespace
}  // namespace weft::tools
