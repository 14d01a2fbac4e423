// SPDX-License-Identifier: Apache-2.0
#include "tools/train/sampler.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

std::vector<uint8_t> textOf(size_t bytes) {
  std::vector<uint8_t> text(bytes);
  std::iota(text.begin(), text.end(), uint8_t{0});
  return text;
}

TEST(Sampler, AnEpochVisitsEachWindowOnce) {
  constexpr size_t kLength = 7;
  for (const size_t bytes : {15u, 22u, 100u, 1000u, 1001u, 1006u}) {
    const std::vector<uint8_t> text = textOf(bytes);
    const Sampler sampler(text, kLength, 1, 42);
    std::set<const uint8_t*> starts;
    for (uint64_t step = 0; step < sampler.windows(); ++step) {
      const auto sample = sampler.sample(step, 0);
      ASSERT_EQ(sample.size(), kLength + 1);
      EXPECT_GE(sample.data(), text.data());
      EXPECT_LE(sample.data() + sample.size(), text.data() + text.size());
      EXPECT_EQ(
          (sample.data() - *starts.insert(sample.data()).first) % static_cast<ptrdiff_t>(kLength),
          0);
    }
    EXPECT_EQ(starts.size(), sampler.windows());
    EXPECT_EQ((*starts.rbegin() - *starts.begin()) / static_cast<ptrdiff_t>(kLength) + 1,
              static_cast<ptrdiff_t>(sampler.windows()));
    EXPECT_GE((sampler.windows() + 2) * kLength, bytes);  // little is left out
  }
}

TEST(Sampler, ASampleDependsOnStepAndGlobalIndexOnly) {
  const std::vector<uint8_t> text = textOf(5000);
  const Sampler one(text, 16, 12, 3), same(text, 16, 12, 3), narrow(text, 16, 4, 3);
  for (uint64_t step = 0; step < 100; ++step) {
    for (uint64_t g = 0; g < 12; ++g) {
      EXPECT_EQ(one.sample(step, g).data(), same.sample(step, g).data());
      // The sequence of samples is one, however it is cut into steps.
      EXPECT_EQ(one.sample(step, g).data(), narrow.sample(step * 3 + g / 4, g % 4).data());
    }
  }
}

TEST(Sampler, SeedsAndEpochsDiffer) {
  const std::vector<uint8_t> text = textOf(5000);
  const Sampler first(text, 16, 1, 1), second(text, 16, 1, 2);
  size_t seeds = 0, epochs = 0;
  for (uint64_t step = 0; step < first.windows(); ++step) {
    const uint8_t* sample = first.sample(step, 0).data();
    if (sample == second.sample(step, 0).data()) ++seeds;
    if (sample == first.sample(step + first.windows(), 0).data()) ++epochs;
  }
  EXPECT_LT(seeds, first.windows() / 20);
  EXPECT_LT(epochs, first.windows() / 20);
}

TEST(Sampler, TheShortestTextIsOneSample) {
  const std::vector<uint8_t> text = textOf(9);
  const Sampler sampler(text, 8, 4, 1);
  EXPECT_EQ(sampler.windows(), 1u);
  EXPECT_EQ(sampler.sample(5, 3).data(), text.data());
}

TEST(Sampler, TooLittleTextIsRefused) {
  const std::vector<uint8_t> text = textOf(8);
  try {
    const Sampler sampler(text, 8, 1, 1);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(),
                 "the text, or its share of --split, has 8 bytes, but --seq 8 needs at least 9");
  }
}

}  // namespace
}  // namespace weft::train
