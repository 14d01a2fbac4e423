// SPDX-License-Identifier: Apache-2.0
#include "base/cache_aligned.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>

namespace weft::inline base {
namespace {

std::uintptr_t lineOf(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) / kCacheAligned;
}

// What false sharing took from ranks that are threads of one process.
TEST(CacheAlignedVector, SmallOnesOfDifferentThreadsShareNoLine) {
  std::array<CacheAlignedVector<std::uint64_t>, 64> vectors;
  for (auto& vector : vectors) vector.resize(2);
  for (std::size_t i = 0; i < vectors.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(lineOf(&vectors[i][0]), lineOf(&vectors[k][0]));
}

TEST(CacheAlignedVector, GrowsAndMovesLikeAnyVector) {
  CacheAlignedVector<int> grown;
  for (int i = 0; i < 1000; ++i) grown.push_back(i);
  const CacheAlignedVector<int> moved = std::move(grown);
  EXPECT_EQ(std::accumulate(moved.begin(), moved.end(), 0), 499500);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(moved.data()) % kCacheAligned, 0u);
}

}  // namespace
}  // namespace weft::inline base
