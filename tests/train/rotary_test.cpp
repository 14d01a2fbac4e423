// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/rotary.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft::train {
namespace {

TEST(Rotary, PairsOfTheZeroFrequencyFormAreThoseOfPartialRotary) {
  EXPECT_EQ(zeroFrequencyOrder(16, 4),
            (std::vector<int64_t>{0, 1, 4, 5, 6, 7, 8, 9, 2, 3, 10, 11, 12, 13, 14, 15}));
  for (const int64_t width : {8, 16, 64, 80, 96, 128}) {
    const int64_t rotary = rotaryRows(width);
    const std::vector<int64_t> order = zeroFrequencyOrder(width, rotary);
    for (int64_t i = 0; i < rotary / 2; ++i) {
      EXPECT_EQ(order[static_cast<size_t>(i)], i);
      EXPECT_EQ(order[static_cast<size_t>(i + width / 2)], i + rotary / 2);
    }
  }
}

TEST(Rotary, TheInverseUndoesAnOrder) {
  const std::vector<int64_t> order = zeroFrequencyQkvOrder(3, 32), inverse = inverseOrder(order);
  ASSERT_EQ(order.size(), 3u * 3 * 32);
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(inverse[static_cast<size_t>(order[i])], static_cast<int64_t>(i));
    EXPECT_EQ(order[i] / 32, static_cast<int64_t>(i) / 32);  // rows stay in their head and part
    if (i / 32 % 3 == 2) {
      EXPECT_EQ(order[i], static_cast<int64_t>(i));  // values
    }
  }
}

}  // namespace
}  // namespace weft::train
