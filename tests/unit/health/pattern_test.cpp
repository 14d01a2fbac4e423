// SPDX-License-Identifier: Apache-2.0
#include "tools/health/pattern.h"

#include <gtest/gtest.h>

namespace weft::health {
namespace {

TEST(Pattern, EveryBitAndPlaceAndSenderCounts) {
  const Pattern pattern(42, 3);
  std::vector<std::uint64_t> words(1000);
  pattern.fill(words.data(), words.size());
  EXPECT_EQ(pattern.countWrong(words.data(), words.size()), 0u);
  for (std::size_t bit = 0; bit < 64; ++bit) {
    words[bit] ^= std::uint64_t{1} << bit;
    EXPECT_EQ(pattern.countWrong(words.data(), words.size()), 1u);
    words[bit] ^= std::uint64_t{1} << bit;
  }
  EXPECT_EQ(pattern.countWrong(words.data() + 1, 999), 999u) << "moved by a word";
  EXPECT_EQ(Pattern(42, 4).countWrong(words.data(), 1000), 1000u);
  EXPECT_EQ(Pattern(43, 3).countWrong(words.data(), 1000), 1000u);
}

}  // namespace
}  // namespace weft::health
