// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/immediate_data.h"

#include <gtest/gtest.h>

namespace weft::wire {
namespace {

const ImmediateValues kFew(100, 4), kMany(1u << 20, 4);

TEST(ImmediateData, PacksCountAndValue) {
  for (const ImmediateData immediate : {ImmediateData{0, 0}, ImmediateData{1, 5},
                                        ImmediateData{15, 12345678}, kFew.bye(), kMany.bye()})
    EXPECT_EQ(ImmediateData::of(immediate.packed()), immediate);
}

// A put of each arrival slot, and the good-bye, have values of their own.
TEST(ImmediateValues, HaveRoomForAllSlots) {
  for (const std::uint32_t slots : {1u, 65534u, 65535u, 65536u, 1u << 20}) {
    const ImmediateValues values(slots, 4);
    EXPECT_LT(slots - 1, values.bye().value) << slots;
    EXPECT_LT(values.bye().value, values.count()) << slots;
    EXPECT_LE(values.count(), std::max(65536u, 2 * slots)) << slots;
  }
}

// No two of n ranks are further apart than each of them is ahead of the next.
TEST(ImmediateValues, GrowWithTheRanks) {
  EXPECT_GE(ImmediateValues(1, 65536).count(), 2 * transport::kMaxLanes * 65536);
}

// Their bits stand for an epoch of 64, whichever of the two is ahead.
TEST(ImmediateValues, EpochsWrapRound) {
  for (const ImmediateValues& values : {kFew, kMany}) {
    const std::uint64_t wrap = values.count();
    for (const std::uint64_t known :
         {std::uint64_t{10}, wrap - 3, wrap + 2, 7 * wrap, 7 * wrap + 9})
      for (const std::int64_t step : {-8, -1, 0, 1, 4, 1000}) {
        const std::uint64_t epoch = known + static_cast<std::uint64_t>(step);
        EXPECT_EQ(values.epochNear(values.completed(epoch).value, known), epoch)
            << known << " " << step;
      }
  }
}

// Nobody tells what is before the first one.
TEST(ImmediateValues, NoEpochIsBeforeTheFirst) {
  EXPECT_EQ(kFew.epochNear(kFew.completed(std::uint64_t{0} - 5).value, 3), 0u);
  EXPECT_EQ(kFew.epochNear(kFew.completed(0).value, 3), 0u);
}

}  // namespace
}  // namespace weft::wire
