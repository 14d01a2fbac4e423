// SPDX-License-Identifier: Apache-2.0
#include "tools/train/megatron_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

using Entry = MegatronOrder::Entry;

std::vector<int> shuffled(int n) {
  std::vector<int> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  std::mt19937 random(1234);
  shuffleAsNumpy(std::span(values), random);
  return values;
}

// Of RandomState(1234).shuffle.
TEST(MegatronOrder, ShufflesAsNumpy) {
  EXPECT_EQ(shuffled(10), (std::vector<int>{7, 2, 9, 1, 0, 8, 4, 5, 6, 3}));
  const std::vector<int> many = shuffled(1000);
  EXPECT_EQ(std::vector<int>(many.begin(), many.begin() + 5),
            (std::vector<int>{681, 990, 155, 768, 438}));
  EXPECT_EQ(std::vector<int>(many.end() - 3, many.end()), (std::vector<int>{294, 723, 815}));
}

TEST(MegatronOrder, WalksAsMegatron) {
  const std::vector<int32_t> a{3, 2, 4}, orderA{2, 0, 1}, b{5, 1, 6}, orderB{0, 1, 2};
  EXPECT_EQ(MegatronOrder::walk(a, orderA, 3, 2), (std::vector<Entry>{{0, 0}, {0, 3}, {1, 2}}));
  EXPECT_EQ(MegatronOrder::walk(b, orderB, 4, 2), (std::vector<Entry>{{0, 0}, {0, 4}, {2, 2}}));
}

// Samples are windows of one stream, which begin a length apart.
TEST(MegatronOrder, SamplesAreWindowsOfTheDocumentsInTheirOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<int32_t> lengths(1 + random() % 6);
    for (int32_t& n : lengths) n = static_cast<int32_t>(random() % 9);
    lengths[0] += 9;
    const size_t length = 1 + random() % 8;
    const MegatronOrder order(lengths, static_cast<uint32_t>(round), length, 1 + random() % 40);
    std::vector<std::pair<size_t, size_t>> stream;  // document, token
    for (const int32_t d : order.documents())
      for (int32_t t = 0; t < lengths[static_cast<size_t>(d)]; ++t)
        stream.emplace_back(static_cast<size_t>(d), static_cast<size_t>(t));
    for (uint64_t i = 0; i < order.samples(); ++i) {
      size_t at = order.shuffle()[i] * length, count = 0;
      for (const auto& [document, from, n] : order.sample(i))
        for (size_t t = from; t < from + n; ++t, ++count)
          ASSERT_EQ(stream.at(at++), std::pair(document, t)) << "round " << round;
      ASSERT_EQ(count, length + 1);
    }
  }
}

// 4 documents of 25 tokens, samples of 9 + 1: 11 an epoch, 22 in two.
TEST(MegatronOrder, ALastEpochThatGivesFewSamplesIsShuffledApart) {
  const std::vector<int32_t> lengths(4, 25);
  const MegatronOrder few(lengths, 7, 9, 11 + 7), many(lengths, 7, 9, 11 + 8),
      one(lengths, 7, 9, 11);
  EXPECT_EQ(one.documents().size(), 4u);
  EXPECT_EQ(one.samples(), 11u);
  for (const MegatronOrder* order : {&few, &many}) {
    EXPECT_EQ(order->documents().size(), 8u);
    EXPECT_EQ(order->samples(), 22u);
  }
  const auto isApart = [](const MegatronOrder& order) {  // 11 samples lie before the last epoch
    return std::ranges::all_of(order.shuffle().first(11), [](uint32_t i) { return i < 11; });
  };
  EXPECT_TRUE(isApart(few)) << "7 of 11 are below 0.8";
  EXPECT_FALSE(isApart(many)) << "8 of 11 are not: int(0.8 * 11) is 8";
}

TEST(MegatronOrder, SharesAreRoundedAsNumpy) {
  const double split[] = {969, 30, 1}, halves[] = {1, 1};
  EXPECT_EQ(shareOf(1000, split, 0).end, 969u);
  EXPECT_EQ(shareOf(1000, split, 1).begin, 969u);
  EXPECT_EQ(shareOf(1000, split, 1).end, 999u);
  EXPECT_EQ(shareOf(5, halves, 0).end, 2u) << "2.5 to even";
  EXPECT_EQ(shareOf(5, halves, 1).end, 5u);
}

TEST(MegatronOrder, MoreThanItCountsIsRefused) {
  const std::vector<int32_t> lengths{1 << 30};
  EXPECT_THROW(MegatronOrder(lengths, 1, 1, uint64_t{1} << 32), Failure);
}

}  // namespace
}  // namespace weft::train
