// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/collective.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace weft::perf {
namespace {

Problem problemOf(const char* name, int rank, int ranks, std::size_t bytes,
                  bool roundBlocks = true) {
  return makeProblem(parseCollective(name), typeInfo(weftFloat32), noOp(), 0, rank, ranks, bytes,
                     roundBlocks);
}

TEST(Collective, NamesAreThoseOfNcclTests) {
  EXPECT_STREQ(parseCollective("all_reduce").name, "all_reduce");
  EXPECT_STREQ(parseCollective("reduce_scatter_perf").name, "reduce_scatter");
  EXPECT_THROW(parseCollective("allreduce"), std::invalid_argument);
}

TEST(Collective, BlocksOfGatherAndScatterFormsAreRounded) {
  EXPECT_EQ(problemOf("all_gather", 0, 2, 8).bytes(), 0u);
  EXPECT_EQ(problemOf("all_gather", 0, 2, 8, false).bytes(), 8u);
  EXPECT_EQ(problemOf("all_gather", 0, 3, 1000).count, 80u);
  EXPECT_EQ(problemOf("reduce_scatter", 0, 3, 1000).bytes(), 960u);
  EXPECT_EQ(problemOf("all_reduce", 0, 3, 1000).bytes(), 1000u);
  EXPECT_EQ(problemOf("alltoall", 0, 3, 1000).bytes(), 996u);
}

TEST(Collective, BlocksLieInsideTheBuffersAndDoNotOverlap) {
  for (const Collective& collective : allCollectives()) {
    for (int ranks : {1, 2, 3, 8}) {
      for (std::size_t bytes : {0u, 4u, 60u, 4096u, 100000u}) {
        for (int rank = 0; rank < ranks; ++rank) {
          const Problem p = problemOf(collective.name, rank, ranks, bytes, false);
          std::size_t end = 0;
          for (const Block& block : collective.expected(p)) {
            EXPECT_EQ(block.at, end) << collective.name;
            end += block.count;
            if (block.source == Block::kReduced) {
              EXPECT_LE(block.from + block.count, p.sendCount) << collective.name;
              continue;
            }
            const Problem source = problemOf(collective.name, block.source, ranks, bytes, false);
            EXPECT_LE(block.from + block.count, source.sendCount) << collective.name;
          }
          EXPECT_LE(end, p.recvCount) << collective.name;
          EXPECT_LE(p.sendAt + p.sendCount, p.total) << collective.name;
          EXPECT_LE(p.recvAt + p.recvCount, p.total) << collective.name;
        }
      }
    }
  }
}

TEST(Collective, UnevenBlocksCoverTheVector) {
  const Problem p = problemOf("all_gather_v", 0, 4, 64 * 4);
  EXPECT_EQ(p.counts, (std::vector<std::size_t>{4, 12, 20, 28}));
  const Problem tiny = problemOf("all_gather_v", 0, 4, 2 * 4);
  EXPECT_EQ(tiny.counts, (std::vector<std::size_t>{0, 0, 1, 1}));
}

TEST(Collective, BusFactors) {
  EXPECT_DOUBLE_EQ(parseCollective("all_reduce").busFactor(4), 1.5);
  EXPECT_DOUBLE_EQ(parseCollective("all_gather").busFactor(4), 0.75);
  EXPECT_DOUBLE_EQ(parseCollective("broadcast").busFactor(4), 1);
}

TEST(Collective, EveryBlockOfAlltoallvIsSentAndReceivedOnce) {
  constexpr int kRanks = 3;
  for (int source = 0; source < kRanks; ++source) {
    std::size_t end = 0;
    for (int target = 0; target < kRanks; ++target) {
      const Problem p = problemOf("alltoallv", target, kRanks, 3600);
      const Block block = p.collective->expected(p)[static_cast<std::size_t>(source)];
      EXPECT_EQ(block.from, end) << source << " to " << target;
      end += block.count;
    }
    EXPECT_EQ(end, 900u);
  }
}

TEST(Collective, SendrecvGoesAroundTheRingOrByPairs) {
  Problem p = problemOf("sendrecv", 0, 4, 64);
  EXPECT_EQ(p.to, 1);
  EXPECT_EQ(p.from, 3);
  routeBy({{0, 2}, {2, 3}}, p);
  EXPECT_EQ(p.to, 2);
  EXPECT_EQ(p.from, -1);
  EXPECT_TRUE(p.collective->expected(p).empty());
}

}  // namespace
}  // namespace weft::perf
