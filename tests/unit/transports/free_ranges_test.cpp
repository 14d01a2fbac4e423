// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/free_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace weft::transport {
namespace {

TEST(FreeRanges, TakesTheLowestPlaceThatFits) {
  shm::FreeRanges free(100);
  EXPECT_EQ(free.take(10, 1), 0u);
  EXPECT_EQ(free.take(20, 1), 10u);
  EXPECT_EQ(free.take(70, 1), 30u);
  EXPECT_EQ(free.take(1, 1), std::nullopt);
  EXPECT_EQ(free.count(), 0u);
  free.give(10, 20);
  EXPECT_EQ(free.take(21, 1), std::nullopt);
  EXPECT_EQ(free.take(20, 1), 10u);
}

TEST(FreeRanges, AlignsAndKeepsTheGap) {
  shm::FreeRanges free(100);
  EXPECT_EQ(free.take(5, 1), 0u);
  EXPECT_EQ(free.take(10, 32), 32u);
  EXPECT_EQ(free.take(27, 1), 5u);  // the gap, to the byte
  EXPECT_EQ(free.take(32, 32), 64u);
  EXPECT_EQ(free.take(16, 64), std::nullopt);
}

TEST(FreeRanges, MergesWithBothNeighbours) {
  for (const auto& order : {std::vector{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {2, 0, 1}}) {
    shm::FreeRanges free(30);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(free.take(10, 1));
    for (const int i : order) free.give(static_cast<std::size_t>(i) * 10, 10);
    EXPECT_EQ(free.count(), 1u);
    EXPECT_EQ(free.take(30, 1), 0u);
  }
}

// Any history: what is out never overlaps, and when all is back it is one range again.
TEST(FreeRanges, SurviveAnyHistory) {
  constexpr std::size_t kBytes = 4096;
  std::mt19937 random(1);
  shm::FreeRanges free(kBytes);
  std::vector<int> owner(kBytes, 0);
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (int step = 1; step <= 20000; ++step) {
    if (random() % 2 == 0 && !out.empty()) {
      std::swap(out[random() % out.size()], out.back());
      const auto [offset, bytes] = out.back();
      out.pop_back();
      std::fill_n(owner.begin() + static_cast<std::ptrdiff_t>(offset), bytes, 0);
      free.give(offset, bytes);
    } else {
      const std::size_t bytes = 1 + random() % 300;
      const std::size_t alignment = std::size_t{1} << random() % 8;
      const auto offset = free.take(bytes, alignment);
      if (!offset) continue;
      ASSERT_EQ(*offset % alignment, 0u);
      for (std::size_t i = *offset; i < *offset + bytes; ++i)
        ASSERT_EQ(std::exchange(owner.at(i), step), 0) << "step " << step;
      out.emplace_back(*offset, bytes);
    }
  }
  for (const auto& [offset, bytes] : out) free.give(offset, bytes);
  EXPECT_EQ(free.count(), 1u);
  EXPECT_EQ(free.take(kBytes, 1), 0u);
}

}  // namespace
}  // namespace weft::transport
