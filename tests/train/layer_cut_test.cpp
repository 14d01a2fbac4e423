// SPDX-License-Identifier: Apache-2.0
#include "tools/train/layer_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

namespace weft::train {
namespace {

using Blocks = std::vector<int64_t>;

// What the dearest part of a cut costs.
double dearest(const std::vector<double>& costs, const Blocks& taken) {
  double most = 0;
  auto next = costs.begin();
  for (const int64_t count : taken) {
    most = std::max(most, std::accumulate(next, next + count, 0.0));
    next += count;
  }
  EXPECT_EQ(next, costs.end());
  return most;
}

// Calls body(cut) for all cuts of so many items.
void forAllCuts(int64_t items, int64_t parts, Blocks& taken,
                const std::function<void(const Blocks&)>& body) {
  if (parts == 1) {
    taken.push_back(items);
    body(taken);
    return taken.pop_back();
  }
  for (int64_t first = 1; first <= items - (parts - 1); ++first) {
    taken.push_back(first);
    forAllCuts(items - first, parts - 1, taken, body);
    taken.pop_back();
  }
}

TEST(LayerCut, NoCutHasACheaperDearestPart) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto parts = static_cast<int64_t>(1 + random() % 5);
    std::vector<double> costs(static_cast<size_t>(parts) + random() % 8);
    for (double& cost : costs) cost = static_cast<double>(random() % 20);
    const Blocks cut = cheapestCut(costs, parts);
    ASSERT_EQ(cut.size(), static_cast<size_t>(parts));
    EXPECT_GT(*std::ranges::min_element(cut), 0);
    const double ours = dearest(costs, cut);
    Blocks taken;
    forAllCuts(static_cast<int64_t>(costs.size()), parts, taken,
               [&](const Blocks& other) { EXPECT_LE(ours, dearest(costs, other) + 1e-9); });
  }
}

TEST(LayerCut, PartsAreAsEqualAsTheyCanBe) {
  const std::vector<double> tenBlocks(10, 1.0);
  EXPECT_EQ(cheapestCut(tenBlocks, 4), (Blocks{2, 2, 3, 3}));
  EXPECT_EQ(cheapestCut(tenBlocks, 10), Blocks(10, 1));
  EXPECT_EQ(cheapestCut(tenBlocks, 1), (Blocks{10}));
}

TEST(LayerCut, WhatIsDearStandsAlone) {
  EXPECT_EQ(cheapestCut(std::vector<double>{6, 1, 1, 1, 1, 5}, 3), (Blocks{1, 4, 1}));
  EXPECT_EQ(cheapestCut(std::vector<double>{0, 0, 0}, 2).size(), 2u);
}

}  // namespace
}  // namespace weft::train
