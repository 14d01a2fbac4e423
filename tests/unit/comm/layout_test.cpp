// SPDX-License-Identifier: Apache-2.0
// What a window has room for, and what of it exists from the beginning.
#include "comm/layout.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/unit/slow_build.h"

namespace weft::comm {
namespace {

plan::Tuning tuningOf(std::uint32_t ranks) {
  plan::Tuning tuning;
  tuning.ranks = ranks;
  for (std::uint32_t r = 0; r < ranks; ++r) tuning.nodes.push_back(r / 2);
  return tuning;
}

transport::WindowLayout onOneHost(std::uint32_t ranks) {
  transport::WindowLayout layout;
  EXPECT_TRUE(layoutFor(tuningOf(ranks), true, &layout).ok());
  return layout;
}

// Control page and dense arrival slots.
std::size_t bytesAtCreation(const transport::WindowLayout& layout) {
  return layout.arrivals() + transport::kMaxLanes * layout.denseBytes();
}

TEST(Layout, HasPagesForWhatAllUseFromTheBeginningAndRoomForWhatIsForced) {
  for (const std::uint32_t ranks : {2u, 8u, 64u, 128u, 256u, 1024u, 4096u}) {
    const transport::WindowLayout layout = onOneHost(ranks);
    std::printf("  %4u ranks: %6zu KiB at creation, room for %8zu KiB\n", ranks,
                bytesAtCreation(layout) >> 10, layout.size() >> 10);
    EXPECT_LE(bytesAtCreation(layout), (std::size_t{16} + ranks) << 10) << ranks;
    EXPECT_GE(layout.regions().perPeer, 2 * ranks - 1) << ranks << ": a ring";
    EXPECT_LT(layout.size(), std::size_t{16} << 30) << ranks << ": all ranks map each other's";
  }
}

transport::RingStages stagesOf(std::uint32_t ranks, std::uint32_t cores) {
  const transport::WindowLayout layout = onOneHost(ranks);
  EXPECT_LE(layout.ringStages.bytes * ranks, std::size_t{16} << 20) << ranks;
  plan::Tuning tuning = tuningOf(ranks);
  tuning.costs.cores = cores;
  return targetFor(tuning, layout).ringStages;
}

// As far as memory allows; a rank with a core of its own keeps them in its cache.
TEST(Layout, RanksThatShareCoresGoFartherAhead) {
  const auto depth = [](std::uint32_t ranks, std::uint32_t cores) {
    return stagesOf(ranks, cores).shorter.count;
  };
  EXPECT_EQ(depth(2, 2), transport::kRingStages);
  EXPECT_EQ(depth(3, 2), transport::kRing);
  EXPECT_EQ(depth(16, 2), transport::kRing);
  EXPECT_EQ(depth(16, 16), transport::kRingStages);
  EXPECT_EQ(depth(17, 2), transport::kRingStages);
  EXPECT_EQ(depth(1024, 2), transport::kRingStages);
}

TEST(Layout, RanksThatShareCoresSendLongerMessagesAhead) {
  const auto longest = [](std::uint32_t ranks, std::uint32_t cores) {
    const transport::RingStages stages = stagesOf(ranks, cores);
    return stages.longer.count == 0 ? stages.shorter.bytes : stages.longer.bytes;
  };
  EXPECT_EQ(longest(2, 2), transport::kMostRingBytes);
  EXPECT_EQ(longest(4, 2), transport::kMostLongRingBytes);
  EXPECT_EQ(longest(8, 2), transport::kMostLongRingBytes / 2);
  EXPECT_EQ(longest(64, 2), transport::kMostRingBytes);
  EXPECT_EQ(longest(128, 128), transport::kMostRingBytes / 2);
  EXPECT_EQ(longest(1024, 2), std::size_t{256});
}

// Wires let a peer raise its own arrival slots alone.
TEST(Layout, EveryArrivalSlotHasOneWriter) {
  for (const std::uint32_t ranks : {1u, 2u, 3u, 8u, 33u}) {
    const transport::WindowLayout layout = onOneHost(ranks);
    const transport::ArrivalRegions regions = layout.regions();
    std::vector<int> seen(layout.arrivalSlots, 0);
    for (std::uint32_t writer = 0; writer < ranks; ++writer)
      for (std::uint32_t index = 0; index < regions.perPeer; ++index) {
        const std::uint32_t slot = regions.slotOf(writer, index);
        ASSERT_LT(slot, layout.arrivalSlots);
        ++seen[slot];
        EXPECT_EQ(regions.writerOf(slot), writer);
        EXPECT_EQ(regions.indexOf(slot), index);
        for (const std::uint64_t lane : {0u, 3u})
          EXPECT_EQ(layout.raisedBy(lane * layout.arrivalSlots + slot), writer);
      }
    EXPECT_EQ(seen, std::vector<int>(layout.arrivalSlots, 1)) << ranks;
  }
}

// They were counted modulo 2^32.
TEST(Layout, MoreSlotsThanCanBeNumberedAreRefused) {
  transport::WindowLayout layout;
  EXPECT_TRUE(layoutFor(tuningOf(5700), false, &layout).ok());
  const Status wires = layoutFor(tuningOf(5900), false, &layout);
  EXPECT_EQ(wires.code(), Code::InvalidUsage);
  EXPECT_NE(wires.text().find("5900 ranks"), std::string::npos) << wires.text();
  EXPECT_NE(wires.text().find("28 bits"), std::string::npos) << wires.text();
  if (test::kSlowBuild) return;  // half a minute
  EXPECT_TRUE(layoutFor(tuningOf(23000), true, &layout).ok());
  EXPECT_NE(layoutFor(tuningOf(23300), true, &layout).text().find("32 bits"), std::string::npos);
}

}  // namespace
}  // namespace weft::comm
