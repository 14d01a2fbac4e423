// SPDX-License-Identifier: Apache-2.0
#include "sim/lanes.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::sim {
namespace {

// What comes for one segment is no other's, however many have had its lane before.
TEST(Lanes, EachSegmentWaitsForItsOwn) {
  for (const std::uint64_t size : {1u, 2u, 3u, 4u, 5u, 7u}) {
    Lanes lanes;
    lanes.open(size, 3);
    EXPECT_EQ(lanes.size(), size);
    for (std::uint64_t first = 0; first < 40; ++first) {  // of those in flight
      for (std::uint64_t segment = first; segment < first + size; ++segment)
        for (std::uint32_t wait = 0; wait < 3; ++wait)
          ASSERT_EQ(lanes.hasArrived(segment, wait), segment < first + size - 1 && first > 0)
              << size << " lanes, segment " << segment << ", wait " << wait;
      const std::uint64_t from = first == 0 ? 0 : first + size - 1;
      for (std::uint64_t segment = from; segment < first + size; ++segment)
        for (std::uint32_t wait = 0; wait < 3; ++wait) {
          lanes.arrive(segment, wait);
          ASSERT_TRUE(lanes.hasArrived(segment, wait));
        }
    }
  }
}

TEST(Lanes, ThoseInFlightAreDifferentOnes) {
  Lanes lanes;
  lanes.open(5, 1);
  for (std::uint64_t first = 0; first < 20; ++first) {
    std::set<const Lane*> all;
    std::set<std::uint32_t> numbers;
    for (std::uint64_t segment = first; segment < first + 5; ++segment) {
      all.insert(&lanes.of(segment));
      numbers.insert(lanes.numberOf(segment));
    }
    EXPECT_EQ(all.size(), 5u);
    EXPECT_EQ(numbers, (std::set<std::uint32_t>{0, 1, 2, 3, 4}));
  }
}

}  // namespace
}  // namespace weft::sim
