// SPDX-License-Identifier: Apache-2.0
// Sums of gradients by several threads: the sums, the norm and the first that is not finite are
// those of one.
#include "shard/fold.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace weft::test {
using namespace shard;
namespace {

constexpr std::size_t kTile = kFoldTile, kElements = 7 * kTile + 100;
using Gradients = std::array<std::vector<float>, 2>;

struct Folded {
  std::vector<float> sums;
  GradientReport report;
};

// In tiles, which threads take in turn.
Folded foldBy(std::uint32_t threads, const Layout& layout, const Gradients& gradients) {
  Folded made{std::vector<float>(kElements), {}};
  FoldEpilogue epilogue;
  for (int call = 0; call < 2; ++call) {  // the second finds nothing of the first
    made.report = {};
    epilogue.begin(
        {.layout = &layout, .sums = made.sums.data(), .final = true, .report = &made.report});
    for (std::uint64_t at = 0; at < kElements; at += kTile) {
      plan::Epilogue* const mine =
          epilogue.ofThread(static_cast<std::uint32_t>(at / kTile) % threads);
      const void* const addends[] = {gradients[0].data() + at, gradients[1].data() + at};
      mine->run(nullptr, addends, at, std::min<std::uint64_t>(kTile, kElements - at));
    }
    epilogue.end();
  }
  return made;
}

TEST(FoldEpilogue, FindsTheSameByAnyNumberOfThreads) {
  Layout layout;
  ASSERT_TRUE(Layout::make({{.name = "w", .elements = kElements}}, kElements, 1, &layout).ok());
  std::mt19937 random(3);
  Gradients gradients;
  for (auto& all : gradients)
    for (std::size_t i = 0; i < kElements; ++i)
      all.push_back(static_cast<float>(random() % 2000) * 1e-3f - 1);
  for (const bool bad : {false, true}) {
    if (bad) gradients[1][3 * kTile + 5] = gradients[0][5 * kTile] = INFINITY;
    const Folded alone = foldBy(1, layout, gradients);
    EXPECT_EQ(alone.report.firstBad == 3 * kTile + 5 && alone.report.badMember == 1, bad);
    for (const std::uint32_t threads : {2u, 3u, 8u}) {
      const Folded together = foldBy(threads, layout, gradients);
      EXPECT_EQ(together.sums, alone.sums);
      EXPECT_EQ(together.report.squares.words(), alone.report.squares.words());
      EXPECT_EQ(together.report.nonFinite, alone.report.nonFinite);
      EXPECT_EQ(together.report.firstBad, alone.report.firstBad);
      EXPECT_EQ(together.report.badMember, alone.report.badMember);
    }
  }
}

}  // namespace
}  // namespace weft::test
