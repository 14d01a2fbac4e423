// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/notice.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Notice, PacksCountAndValue) {
  for (const Notice notice : {Notice{0, 0}, Notice{1, 5}, Notice{15, 12345678}, Notice::bye()})
    EXPECT_EQ(Notice::of(notice.packed()), notice);
  EXPECT_NE(Notice::bye(), (Notice{Notice::kMost, 0}));
}

// 28 bits stand for an epoch of 64, whichever of the two is ahead.
TEST(Notice, EpochsWrapRound) {
  constexpr std::uint64_t kWrap = std::uint64_t{1} << Notice::kValueBits;
  for (const std::uint64_t known :
       {std::uint64_t{10}, kWrap - 3, kWrap + 2, 7 * kWrap, 7 * kWrap + 9})
    for (const std::int64_t step : {-8, -1, 0, 1, 4, 1000}) {
      const std::uint64_t epoch = known + static_cast<std::uint64_t>(step);
      EXPECT_EQ(Notice::completed(epoch).epochNear(known), epoch) << known << " " << step;
    }
}

}  // namespace
}  // namespace weft
