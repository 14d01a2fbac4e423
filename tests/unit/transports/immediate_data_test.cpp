// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/immediate_data.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

TEST(ImmediateData, PacksCountAndValue) {
  for (const wire::ImmediateData immediate :
       {wire::ImmediateData{0, 0}, wire::ImmediateData{1, 5}, wire::ImmediateData{15, 12345678},
        wire::ImmediateData::bye()})
    EXPECT_EQ(wire::ImmediateData::of(immediate.packed()), immediate);
  EXPECT_NE(wire::ImmediateData::bye(), (wire::ImmediateData{wire::ImmediateData::kMost, 0}));
}

// 28 bits stand for an epoch of 64, whichever of the two is ahead.
TEST(ImmediateData, EpochsWrapRound) {
  constexpr std::uint64_t kWrap = std::uint64_t{1} << wire::ImmediateData::kValueBits;
  for (const std::uint64_t known :
       {std::uint64_t{10}, kWrap - 3, kWrap + 2, 7 * kWrap, 7 * kWrap + 9})
    for (const std::int64_t step : {-8, -1, 0, 1, 4, 1000}) {
      const std::uint64_t epoch = known + static_cast<std::uint64_t>(step);
      EXPECT_EQ(wire::ImmediateData::completed(epoch).epochNear(known), epoch)
          << known << " " << step;
    }
}

// Nobody tells what is before the first one.
TEST(ImmediateData, NoEpochIsBeforeTheFirst) {
  EXPECT_EQ(wire::ImmediateData::completed(std::uint64_t{0} - 5).epochNear(3), 0u);
  EXPECT_EQ(wire::ImmediateData::completed(0).epochNear(3), 0u);
}

}  // namespace
}  // namespace weft::transport
