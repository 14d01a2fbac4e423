// SPDX-License-Identifier: Apache-2.0
// Blocks that are computed again in backward.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/train/most_memory.h"
#include "tests/train/small_models.h"
#include "tools/train/model.h"

namespace weft::train {
namespace {

struct Learned {
  std::vector<double> losses = {};
  std::vector<std::vector<float>> gradients = {};
  std::vector<std::pair<size_t, Pass>> uses = {};
};

enum class Keeps { kAll, kInputs, kNothing };  // of a block, the last with what goes in in a file

struct Way {
  Keeps keeps;
  double dropout = 0;
  Compute compute = Compute::kAsWeights;
};

// One batch after the other, each learned and then evaluated.
Learned learn(const ModelShape& shape, const std::vector<Batch>& batches, const Way& setting) {
  std::vector<std::vector<float>> weights;
  Learned made;
  std::vector<ParameterMemory> memory;
  for (const Parameter& parameter : parametersOf(shape).list) {
    weights.emplace_back(parameter.size());
    made.gradients.emplace_back(parameter.size());
    memory.push_back({weights.back().data(), made.gradients.back().data()});
  }
  Model model(shape, setting.compute, Element::kFloat32, Element::kFloat32, memory);
  model.initialize(7);
  model.dropOut(setting.dropout, 3);
  const test::TemporaryFolder folder;
  if (setting.keeps == Keeps::kInputs) model.recomputeBlocks();
  if (setting.keeps == Keeps::kNothing)
    model.recomputeBlocks(std::make_shared<OffloadFile>(folder.path()));
  model.onLayer(
      {[&](size_t first, size_t, Pass pass) { made.uses.emplace_back(first, pass); }, {}});
  for (const Batch& batch : batches) {
    made.losses.push_back(model.forward(batch));
    model.backward(1.0);
    made.losses.push_back(model.evaluate(batch));
  }
  return made;
}

TEST(Recomputation, GivesTheSameBits) {
  for (const ModelShape& shape : allShapes())
    for (const Way& way :
         {Way{Keeps::kAll, 0.2}, Way{Keeps::kAll, 0, Compute::kAutocastBfloat16}}) {
      const std::vector<Batch> batches{batchFor(shape, 0, 3), batchFor(shape, 3, 3)};
      const Learned kept = learn(shape, batches, way);
      for (const Keeps keeps : {Keeps::kInputs, Keeps::kNothing}) {
        const Learned again = learn(shape, batches, {keeps, way.dropout, way.compute});
        EXPECT_EQ(kept.losses, again.losses);
        EXPECT_EQ(kept.gradients, again.gradients);
        EXPECT_EQ(kept.uses, again.uses);
      }
    }
}

// Of eight blocks, what one of them needs and what goes into each; or of those, the few that are being
// written.
TEST(Recomputation, TakesLessMemory) {
  for (const char* name : {"gpt", "bert"}) {
    ModelShape shape = optionsOf(name).shape;
    shape.layers = 8;
    const auto mostOf = [&](Keeps keeps) {
      return mostMemoryOf([&] { learn(shape, {batchFor(shape, 0, 8)}, {keeps, 0.1}); });
    };
    const double kept = mostOf(Keeps::kAll), again = mostOf(Keeps::kInputs),
                 away = mostOf(Keeps::kNothing);
    EXPECT_GT(kept, 1e6);
    EXPECT_LT(again, 0.6 * kept) << name << ": " << again << " of " << kept;
    EXPECT_LT(away, again) << name;
  }
}

}  // namespace
}  // namespace weft::train
