// SPDX-License-Identifier: Apache-2.0
#include "plan/layout.h"

#include <gtest/gtest.h>

#include <random>

#include "schedule/registry.h"
#include "schedule/transforms.h"

namespace weft::plan {
namespace {

constexpr Budget kBudget{1 << 20, 256 << 10};

schedule::Schedule staged(schedule::Collective collective, std::string_view name,
                          std::uint32_t ranks) {
  return schedule::stageOut(schedule::findAlgorithm(collective, name)->make({.ranks = ranks}));
}

Call vectorCall(std::uint64_t count, reduce::DType type = reduce::DType::F32) {
  Call call;
  call.collective = schedule::Collective::AllReduce;
  call.type = type;
  call.count = count;
  return call;
}

// Bytes of a chunk in a segment, by the rule of BoundOp.
std::uint64_t length(const ByteLayout& layout, std::uint32_t chunk, std::uint64_t segment) {
  const std::uint64_t shift = segment * layout.segmentBytes();
  const std::uint64_t limit = layout.limit(chunk);
  return std::min(layout.stride(), limit > shift ? limit - shift : 0);
}

TEST(ByteLayout, ChunksOfAllSegmentsCoverTheVectorOnce) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const std::uint32_t ranks = 1 + static_cast<std::uint32_t>(random() % 9);
    const std::uint64_t count = random() % (trial % 3 == 0 ? 50 : 3000000);
    const schedule::Schedule schedule = staged(schedule::Collective::AllReduce, "mesh", ranks);
    const ByteLayout layout(schedule, vectorCall(count), kBudget);
    std::uint64_t at = 0;
    for (std::uint64_t s = 0; s < layout.segments(); ++s) {
      for (std::uint32_t c = 0; c < ranks; ++c) {
        const std::uint64_t bytes = length(layout, c, s);
        if (bytes == 0) continue;
        EXPECT_EQ(s * layout.segmentBytes() + layout.outOffset(c), at) << count << " on " << ranks;
        EXPECT_EQ(bytes % 4, 0u);
        at += bytes;
      }
    }
    EXPECT_EQ(at, count * 4) << ranks << " ranks";
    EXPECT_LE(schedule.tmpChunks * layout.stride(), kBudget.arenaBytes);
  }
}

TEST(ByteLayout, LongVectorsKeepTheirStagingInTheSoftBudget) {
  const schedule::Schedule schedule = staged(schedule::Collective::AllReduce, "mesh", 4);
  const ByteLayout layout(schedule, vectorCall(64 << 20), kBudget);
  EXPECT_GT(layout.segments(), 1u);
  EXPECT_LE(schedule.tmpChunks * layout.stride(), kBudget.stagingBytes);
  EXPECT_EQ(layout.stride() % 64, 0u) << "chunks start on cache lines";
}

// What is in flight of a long message fills the cache, and that of a shorter one half of it; where
// there is one slot alone it has half of it always.
TEST(ByteLayout, LongMessagesHaveLongerSegmentsIfTheyStillOverlap) {
  Budget budget = kBudget;
  budget.longStagingBytes = 2 * budget.stagingBytes;
  const auto segments = [&](const schedule::Schedule& schedule, std::uint64_t bytes) {
    return ByteLayout(schedule, vectorCall(bytes / 4), budget).segments();
  };
  const schedule::Schedule mesh = staged(schedule::Collective::AllReduce, "mesh", 2);
  ASSERT_GE(mesh.tmpChunks, 2u);
  const std::uint64_t most = 2 * (budget.longStagingBytes / mesh.tmpChunks);  // of a segment
  EXPECT_EQ(segments(mesh, 8 * most), 8u);
  EXPECT_EQ(segments(mesh, 3 * most), kOverlap);
  EXPECT_EQ(segments(mesh, most), 2u);

  Call call = vectorCall(64 << 20);
  call.collective = schedule::Collective::Broadcast;
  const schedule::Schedule direct = staged(call.collective, "direct", 2);
  ASSERT_EQ(direct.tmpChunks, 1u);
  EXPECT_EQ(ByteLayout(direct, call, budget).stride(), kBudget.stagingBytes);
}

TEST(ByteLayout, UnevenBlocksAreCutInStep) {
  const std::size_t counts[] = {5, 0, 400000, 17};
  const std::size_t displs[] = {100, 0, 1000, 20};
  Call call;
  call.collective = schedule::Collective::AllGather;
  call.type = reduce::DType::F64;
  call.counts = counts;
  call.displs = displs;
  const ByteLayout layout(staged(schedule::Collective::AllGather, "mesh", 4), call, kBudget);
  EXPECT_FALSE(layout.isVector());
  EXPECT_GT(layout.segments(), 1u);
  for (std::uint32_t block = 0; block < 4; ++block) {
    if (counts[block] != 0) {
      EXPECT_EQ(layout.outOffset(block), displs[block] * 8);
    }
    std::uint64_t sum = 0;
    for (std::uint64_t s = 0; s < layout.segments(); ++s) sum += length(layout, block, s);
    EXPECT_EQ(sum, counts[block] * 8);
  }
}

// A schedule may deal blocks in parts, which lie side by side in each segment.
TEST(ByteLayout, PartsOfABlockCoverItOnce) {
  for (const std::uint64_t count : {1u, 7u, 4096u, 300001u}) {
    constexpr std::uint32_t kRanks = 3, kParts = 5;
    schedule::Schedule schedule = schedule::emptySchedule(schedule::Collective::AllGather, "parts",
                                                          kRanks, kRanks, 0, kParts);
    schedule.tmpChunks = kRanks * kParts;
    Call call;
    call.collective = schedule::Collective::AllGather;
    call.type = reduce::DType::F32;
    call.count = count;
    const ByteLayout layout(schedule, call, kBudget);
    for (std::uint32_t block = 0; block < kRanks; ++block) {
      EXPECT_TRUE(layout.isOnePiece({block * kParts, kParts}));
      std::uint64_t at = block * count * 4;
      for (std::uint64_t s = 0; s < layout.segments(); ++s)
        for (std::uint32_t part = 0; part < kParts; ++part) {
          const std::uint32_t chunk = block * kParts + part;
          const std::uint64_t bytes = length(layout, chunk, s);
          if (bytes == 0) continue;
          EXPECT_EQ(s * layout.segmentBytes() + layout.outOffset(chunk), at);
          EXPECT_EQ(layout.inOffset(part), layout.outOffset(part));
          at += bytes;
        }
      EXPECT_EQ(at, (block + 1) * count * 4);
    }
    EXPECT_EQ(layout.isOnePiece({kParts - 1, 2}), layout.isVector());
    EXPECT_LE(schedule.tmpChunks * layout.stride(), kBudget.arenaBytes);
  }
}

TEST(ByteLayout, EvenPackedBlocksInOneSegmentAreAVector) {
  Call call;
  call.collective = schedule::Collective::AllGather;
  call.type = reduce::DType::U8;
  call.count = 12;
  const ByteLayout layout(staged(schedule::Collective::AllGather, "mesh", 3), call, kBudget);
  EXPECT_TRUE(layout.isVector());
  EXPECT_EQ(layout.outOffset(2), 24u);
  EXPECT_EQ(layout.inOffset(0), 0u);
}

TEST(ByteLayout, EmptyCallsHaveOneSegmentOfNothing) {
  const ByteLayout layout(staged(schedule::Collective::AllReduce, "mesh", 3), vectorCall(0),
                          kBudget);
  EXPECT_EQ(layout.segments(), 1u);
  EXPECT_EQ(length(layout, 0, 0), 0u);
}

}  // namespace
}  // namespace weft::plan
