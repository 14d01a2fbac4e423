// SPDX-License-Identifier: Apache-2.0
#include "reduce/fold_choice.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/now.h"

namespace weft::reduce {
namespace {

struct Part {
  std::size_t at, bytes;
  bool past;
};

std::vector<Part> partsOf(FoldChoice& choice, const void* to, std::size_t bytes) {
  std::vector<Part> parts;
  choice.store(to, bytes, [&](std::size_t at, std::size_t n, bool past) {
    parts.push_back({at, n, past});
  });
  return parts;
}

TEST(FoldChoice, StoresAllOnceAndInOrder) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{4}, FoldChoice::kLeastTried - 4,
                                  FoldChoice::kLeastTried, std::size_t{1000012}}) {
    FoldChoice choice;
    int there = 0;
    for (int call = 0; call < 5; ++call) {
      std::size_t stored = 0;
      for (const Part& part : partsOf(choice, &there, bytes)) {
        EXPECT_EQ(part.at, stored);
        EXPECT_EQ(part.at % 64, 0u);
        stored += part.bytes;
      }
      EXPECT_EQ(stored, bytes);
    }
  }
}

TEST(FoldChoice, TriesBothWaysAtOnceWhereThereIsEnough) {
  FoldChoice choice;
  int there = 0;
  EXPECT_EQ(partsOf(choice, &there, FoldChoice::kLeastTried - 4).size(), 1u);
  const std::vector<Part> parts = partsOf(choice, &there, FoldChoice::kLeastTried);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_TRUE(parts[0].past);
  EXPECT_FALSE(parts[1].past);
}

// Less than copies must win by, to go past the caches.
TEST(FoldChoice, TakesTheWayThatFoldsAreQuickerBy) {
  FoldChoice choice;
  int there = 0;
  for (std::uint32_t i = 0; i < StorePreference::kAgree; ++i) choice.preference().judge(140, 100);
  EXPECT_FALSE(partsOf(choice, &there, 4096).front().past);
  for (std::uint32_t i = 0; i < StorePreference::kAgree; ++i) choice.preference().judge(160, 100);
  EXPECT_TRUE(partsOf(choice, &there, 4096).front().past);
}

TEST(FoldChoice, FindsThatOutByItself) {
  FoldChoice choice;
  int there = 0;
  const auto fold = [](std::size_t, std::size_t, bool past) {
    const double until = nowNs() + (past ? 0 : 2e5);
    while (nowNs() < until) continue;
  };
  for (int call = 0; call < 1000 && !choice.preference().isPastCaches(); ++call)
    choice.store(&there, FoldChoice::kLeastTried, fold);
  EXPECT_TRUE(choice.preference().isPastCaches());
}

}  // namespace
}  // namespace weft::reduce
