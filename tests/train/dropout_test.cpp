// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/dropout.h"

#include <ATen/Functions.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/train/small_models.h"
#include "tools/train/model.h"

namespace weft::train {
namespace {

constexpr uint64_t kSeed = 0x1234567890abcdef;

// What is kept of ones.
at::Tensor masked(const Dropout& dropout, at::IntArrayRef shape, size_t layer = 3,
                  DropAt place = DropAt::kMlp, int64_t first = 0) {
  return dropout(at::ones(shape), layer, place, first);
}

TEST(Dropout, KeepsTheMeanAndDropsItsShare) {
  for (const double share : {0.1, 0.5, 0.9}) {
    const at::Tensor kept = masked({share, kSeed, 5, 0}, {16, 250, 100});
    const auto n = static_cast<double>(kept.numel());
    const double dropped = kept.eq(0).sum().item<double>() / n;
    EXPECT_NEAR(dropped, share, 5 * std::sqrt(share * (1 - share) / n));
    EXPECT_NEAR(kept.mean().item<double>(), 1, 5 * std::sqrt(share / (1 - share) / n));
    EXPECT_NEAR(kept.var().item<double>(), share / (1 - share), 0.02 * share / (1 - share));
    EXPECT_TRUE(kept.max().item<float>() == static_cast<float>(1 / (1 - share)));
  }
  EXPECT_TRUE(masked({}, {2, 3}).equal(at::ones({2, 3})));
}

TEST(Dropout, DrawsTheWordsOfLibtorchsPhilox) {
  const at::Tensor kept = masked({0.5, kSeed, 9, 4}, {2, 3, 7, 5});
  for (const int64_t sample : {0, 1}) {
    at::Philox4_32 words(kSeed, uint64_t{9} << 32 | static_cast<uint64_t>(4 + sample),
                         uint64_t{4 * 3 + 3} << 32);
    const at::Tensor flat = kept[sample].flatten();
    for (int64_t i = 0; i < flat.numel(); ++i)
      ASSERT_EQ(flat[i].item<float>(), words() < 0x80000000u ? 0 : 2) << i;
  }
}

// Whoever has which samples, and which part of them.
TEST(Dropout, OfAPartIsThatPart) {
  const Dropout whole{0.3, kSeed, 9, 4};
  const at::Tensor kept = masked(whole, {6, 3, 7, 5});
  EXPECT_TRUE(masked(whole, {6, 3, 7, 5}).equal(kept)) << "again";
  EXPECT_TRUE(masked({0.3, kSeed, 9, 6}, {2, 3, 7, 5}).equal(kept.narrow(0, 2, 2)));
  for (const int64_t head : {0, 1, 2})
    EXPECT_TRUE(
        masked(whole, {6, 1, 7, 5}, 3, DropAt::kMlp, head * 35).equal(kept.narrow(1, head, 1)))
        << head;
}

// Masks of two places agree as often as chance does.
TEST(Dropout, IsAnotherEverywhere) {
  const std::vector<int64_t> shape{1, 100, 100};
  const at::Tensor kept = masked({0.5, kSeed, 9, 4}, shape);
  const auto expectOther = [&](const at::Tensor& other, const char* what) {
    EXPECT_NEAR(kept.eq(other).sum().item<double>(), 5000, 250) << what;
  };
  expectOther(masked({0.5, kSeed + 1, 9, 4}, shape), "seed");
  expectOther(masked({0.5, kSeed ^ uint64_t{1} << 40, 9, 4}, shape), "upper half of the seed");
  expectOther(masked({0.5, kSeed, 10, 4}, shape), "step");
  expectOther(masked({0.5, kSeed, 9, 5}, shape), "sample");
  expectOther(masked({0.5, kSeed, 9, 4}, shape, 4), "layer");
  expectOther(masked({0.5, kSeed, 9, 4}, shape, 3, DropAt::kAttention), "place");
}

// A model drops as it learns and not as it is evaluated.
TEST(Dropout, IsForTrainingAlone) {
  for (const ModelShape& shape : allShapes()) {
    const std::vector<Parameter> list = parametersOf(shape).list;
    std::vector<std::vector<float>> weights, gradients;
    std::vector<ParameterMemory> memory;
    for (const Parameter& parameter : list) {
      weights.emplace_back(parameter.size());
      gradients.emplace_back(parameter.size());
      memory.push_back({weights.back().data(), gradients.back().data()});
    }
    Model model(shape, Compute::kAsWeights, Element::kFloat32, Element::kFloat32, memory);
    model.initialize(7);
    Batch batch = batchFor(shape, 0, 4);
    const double loss = model.forward(batch);
    model.dropOut(0.3, kSeed);
    const double dropping = model.forward(batch);
    EXPECT_NE(dropping, loss);
    EXPECT_EQ(model.evaluate(batch), loss);
    EXPECT_EQ(model.forward(batch), dropping);
    ++batch.step;
    EXPECT_NE(model.forward(batch), dropping);
  }
}

}  // namespace
}  // namespace weft::train
