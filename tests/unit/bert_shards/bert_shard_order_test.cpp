// SPDX-License-Identifier: Apache-2.0
#include "tools/train/bert_shard_order.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace weft::train {
namespace {

std::vector<size_t> shuffled(size_t n, uint64_t seed) {
  std::vector<size_t> values(n);
  std::iota(values.begin(), values.end(), size_t{0});
  shuffleAsPython(values, seed);
  return values;
}

// As printed by Python 3.11: random.Random(seed).shuffle(list(range(n))).
TEST(BertShardOrder, ShufflesAsPythonDoes) {
  using Order = std::vector<size_t>;
  EXPECT_EQ(shuffled(10, 0), (Order{7, 8, 1, 5, 3, 4, 2, 0, 9, 6}));
  EXPECT_EQ(shuffled(10, 42), (Order{7, 3, 2, 8, 5, 6, 9, 4, 0, 1}));
  EXPECT_EQ(shuffled(10, 12345), (Order{8, 7, 3, 5, 1, 2, 9, 4, 0, 6}));
  EXPECT_EQ(shuffled(10, (uint64_t{1} << 32) + 7), (Order{2, 1, 4, 7, 9, 0, 6, 8, 5, 3}));
  const Order many = shuffled(1000, 7);
  EXPECT_EQ(Order(many.begin(), many.begin() + 6), (Order{878, 857, 349, 313, 382, 850}));
  EXPECT_EQ(Order(many.end() - 3, many.end()), (Order{154, 970, 331}));
  EXPECT_EQ(shuffled(1, 7), Order{0});
}

// Files of ten: in each round two ranks have neighbours of the shuffled list; the last round is not learned.
TEST(BertShardOrder, DealsFilesAsThePublishedLoadersDo) {
  const std::vector<size_t> list = shuffled(10, 42 + 3);
  const BertShardOrder two(std::vector<uint64_t>(10, 1), 2, 42);
  for (uint64_t reader = 0; reader < 2; ++reader) {
    const std::vector<size_t> files = two.filesOf(reader, 3);
    ASSERT_EQ(files.size(), 9u);
    for (size_t f = 0; f < 9; ++f) EXPECT_EQ(files[f], list[(2 * f + reader) % 10]);
  }
  const std::vector<size_t> few = shuffled(3, 42);
  const BertShardOrder eight(std::vector<uint64_t>(3, 1), 8, 42);  // 8 mod 3 = 2
  for (uint64_t reader = 0; reader < 8; ++reader)
    EXPECT_EQ(eight.filesOf(reader, 0),
              (std::vector<size_t>{few[reader % 3], few[(8 + reader + 2) % 3]}));
  EXPECT_EQ(BertShardOrder({5}, 2, 42).filesOf(1, 7), std::vector<size_t>{0});
}

// Asked in order or anywhere: all batches of a file, then those of the next one.
TEST(BertShardOrder, WalksThroughTheFiles) {
  const std::vector<uint64_t> batches{3, 1, 4, 1, 5};
  BertShardOrder order(batches, 3, 9);
  for (uint64_t reader = 0; reader < 3; ++reader) {
    std::set<uint64_t> visits;
    std::vector<BertShardOrder::Place> walked;
    for (uint64_t epoch = 0; epoch < 3; ++epoch)
      for (const size_t file : order.filesOf(reader, epoch))
        for (uint64_t batch = 0; batch < batches[file]; ++batch) {
          const auto place = order.place(reader, walked.size());
          EXPECT_EQ(place.file, file);
          EXPECT_EQ(place.batch, batch);
          EXPECT_EQ(visits.insert(place.visit).second, batch == 0);
          EXPECT_TRUE(batch > 0 || walked.empty() || walked.back().next == file);
          walked.push_back(place);
        }
    for (const uint64_t k : {7u, 2u, 20u, 0u}) {
      const auto place = order.place(reader, k);
      EXPECT_EQ(place.file, walked[k].file);
      EXPECT_EQ(place.batch, walked[k].batch);
      EXPECT_EQ(place.visit, walked[k].visit);
    }
  }
}

}  // namespace
}  // namespace weft::train
