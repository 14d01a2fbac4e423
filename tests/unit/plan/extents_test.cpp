// SPDX-License-Identifier: Apache-2.0
#include "plan/extents.h"

#include <gtest/gtest.h>

#include <array>

namespace weft::plan {
namespace {

using schedule::Collective;

Extents of(Collective collective, std::span<const std::size_t> counts = {},
           std::span<const std::size_t> displs = {}) {
  Call call;
  call.collective = collective;
  call.type = reduce::DType::F32;
  call.count = 10;
  call.counts = counts;
  call.displs = displs;
  return extentsOf(call, 1, 3);
}

void expectExtents(const Extents& extents, std::uint64_t in, std::uint64_t out) {
  EXPECT_EQ(extents.in, in);
  EXPECT_EQ(extents.out, out);
}

TEST(Extents, AreThoseOfTheCApi) {
  for (const Collective vectors :
       {Collective::AllReduce, Collective::Reduce, Collective::Broadcast})
    expectExtents(of(vectors), 40, 40);
  for (const Collective gathers : {Collective::AllGather, Collective::Gather})
    expectExtents(of(gathers), 40, 120);
  for (const Collective scatters : {Collective::ReduceScatter, Collective::Scatter})
    expectExtents(of(scatters), 120, 40);
  expectExtents(of(Collective::AllToAll), 120, 120);
  expectExtents(of(Collective::Barrier), 0, 0);
}

TEST(Extents, OfBlocksReachToTheirEnd) {
  const std::array<std::size_t, 3> counts{5, 7, 0}, displs{20, 2, 900};
  expectExtents(of(Collective::AllGather, counts), 28, 48);
  expectExtents(of(Collective::AllGather, counts, displs), 28, 100);
  expectExtents(of(Collective::ReduceScatter, counts, displs), 100, 28);
}

TEST(Extents, OfAStepAreABlockOfEachRank) {
  Call call;
  call.collective = Collective::AllReduce;
  call.op = reduce::RedOp::Epilogue;
  call.count = 10;
  expectExtents(extentsOf(call, 0, 4), 40, 40);
}

}  // namespace
}  // namespace weft::plan
