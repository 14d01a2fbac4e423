// SPDX-License-Identifier: Apache-2.0
#include "tools/train/residency.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace weft::train {
namespace {

// Layers of a random cut: neighbours may share buckets, and forward uses the last bucket first.
std::vector<std::set<int>> randomCut(std::mt19937& random, size_t layers) {
  std::vector<std::set<int>> cut(layers);
  int bucket = 0;
  for (size_t layer = layers; layer-- > 0;) {
    cut[layer].insert(bucket);
    for (auto more = random() % 3; more > 0; --more) cut[layer].insert(++bucket);
    if (layer > 0 && random() % 2 == 0) ++bucket;
  }
  return cut;
}

// Copies that are there, and how often each came in a pass.
struct Copies {
  Residency& residency;
  std::set<int> here = {};
  std::map<int, int> came = {};

  void bring(int bucket) {
    if (here.insert(bucket).second) ++came[bucket];
  }
  void use(const std::vector<std::set<int>>& cut, size_t layer, Pass pass) {
    const auto wanted = residency.use(layer, pass);
    for (const int bucket : wanted.now) bring(bucket);
    if (wanted.next >= 0) bring(wanted.next);
    for (const int bucket : cut[layer]) EXPECT_TRUE(here.contains(bucket));
  }
  void leave(size_t layer, Pass pass) {
    for (const int bucket : residency.leave(layer, pass)) here.erase(bucket);
  }
};

TEST(Residency, EachBucketComesAtMostOnceInAPass) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const size_t layers = 2 + random() % 9;
    const auto firstLayer = static_cast<FirstLayer>(random() % 3);
    const bool tied = firstLayer != FirstLayer::kIsFirst;
    const size_t first = firstLayer == FirstLayer::kIsLast ? 1 : 0;  // that forward begins with
    const auto cut = randomCut(random, layers);
    Residency residency(cut, firstLayer);
    Copies copies{residency};
    for (int micro = 0; micro < 2; ++micro) {
      copies.came.clear();
      for (size_t layer = first; layer + 1 < layers; ++layer) {
        copies.use(cut, layer, Pass::kForward);
        copies.leave(layer, Pass::kForward);
      }
      const auto lastStage = [&](Pass pass) {
        if (tied) copies.use(cut, 0, pass);
        copies.use(cut, layers - 1, pass);
        if (tied) copies.leave(0, pass);
        copies.leave(layers - 1, pass);
      };
      lastStage(Pass::kForward);
      for (const auto& [bucket, times] : copies.came) EXPECT_EQ(times, 1) << bucket;
      copies.came.clear();
      lastStage(Pass::kBackward);
      for (size_t layer = layers - 1; layer-- > first;) {
        copies.use(cut, layer, Pass::kBackward);
        copies.leave(layer, Pass::kBackward);
      }
      for (const auto& [bucket, times] : copies.came) EXPECT_EQ(times, 1) << bucket;
      for (const int bucket : cut.back()) EXPECT_EQ(copies.came.count(bucket), 0u) << bucket;
      EXPECT_TRUE(copies.here.empty());
    }
  }
}

}  // namespace
}  // namespace weft::train
