// SPDX-License-Identifier: Apache-2.0
// Models whose layers are shared by the ranks of a tensor group, beside whole ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "tests/train/most_memory.h"
#include "tests/train/small_models.h"
#include "tools/train/model.h"

namespace weft::train {
namespace {

using Floats = std::vector<std::vector<float>>;  // by parameter

// What a rank has made of a batch.
struct Made {
  double loss = 0, evaluated = 0;
  Floats gradients;
};

Floats zeros(const Parameters& parameters) {
  Floats all;
  for (const Parameter& p : parameters.list) all.emplace_back(p.size());
  return all;
}

Made makeOne(const ModelShape& shape, const Batch& batch, Communicator* group, Compute compute,
             bool cutsPlaces = false) {
  const TensorPart part =
      group == nullptr ? TensorPart{} : TensorPart{group->rank(), group->size()};
  const Parameters own = parametersOf(shape, {part, {}});
  Floats weights = zeros(own);
  Made made;
  made.gradients = zeros(own);
  std::vector<ParameterMemory> memory;
  for (size_t i = 0; i < weights.size(); ++i)
    memory.push_back({weights[i].data(), made.gradients[i].data()});
  Model model(shape, compute, Element::kFloat32, Element::kFloat32, memory,
              {{part, {}}, group, {}, {}, cutsPlaces});
  model.initialize(7);
  made.evaluated = model.evaluate(batch);
  made.loss = model.forward(batch);
  model.backward(1.0);
  return made;
}

std::vector<Made> makeInParts(const ModelShape& shape, const Batch& batch, int parts,
                              Compute compute, bool cutsPlaces = false) {
  std::vector<Communicator> ranks = Communicator::all(parts);
  std::vector<Made> made(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back(
        [&, i] { made[i] = makeOne(shape, batch, &ranks[i], compute, cutsPlaces); });
  for (std::thread& thread : threads) thread.join();
  return made;
}

double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

// Of all gradients, those of the whole model.
void expectThoseOf(const Made& whole, const std::vector<Made>& parts, const ModelShape& shape) {
  const std::vector<Parameter> list = parametersOf(shape).list;
  for (size_t i = 0; i < list.size(); ++i) {
    Floats own;
    for (const Made& part : parts) own.push_back(part.gradients[i]);
    const bool isCopied = list[i].split == Split{};  // and must stay the same
    for (const auto& copy : own) EXPECT_TRUE(!isCopied || copy == own[0]) << list[i].name;
    EXPECT_LT(farthest(whole.gradients[i], joined(list[i], own)), 2e-6) << list[i].name;
  }
}

// An odd vocabulary: parts of it are of different sizes.
std::vector<ModelShape> shapesToShare() {
  std::vector<ModelShape> shapes = allShapes();
  for (ModelShape& shape : shapes) {
    shape.heads = 4;
    shape.vocabulary += 3;
  }
  return shapes;
}

void expectPartsToBeTheModel(bool cutsPlaces) {
  for (const ModelShape& shape : shapesToShare()) {
    const Batch batch = batchFor(shape, 0, 3);
    const Made whole = makeOne(shape, batch, nullptr, Compute::kAsWeights);
    for (const int parts : {2, 4}) {
      const std::vector<Made> made =
          makeInParts(shape, batch, parts, Compute::kAsWeights, cutsPlaces);
      SCOPED_TRACE(fmt::format("family {} in {} parts", static_cast<int>(shape.family), parts));
      for (const Made& part : made) {
        EXPECT_NEAR(part.loss, whole.loss, 1e-6 * whole.loss);
        EXPECT_EQ(part.loss, made[0].loss);
        EXPECT_EQ(part.evaluated, part.loss);
      }
      expectThoseOf(whole, made, shape);
    }
  }
}

TEST(TensorParallel, LayersThatAreSharedAreTheModel) { expectPartsToBeTheModel(false); }

// Norms and what is between the layers that are cut, each rank at its own places.
TEST(TensorParallel, PlacesThatAreSharedAreTheModel) { expectPartsToBeTheModel(true); }

// Weights and gradients do not count.
TEST(TensorParallel, PlacesThatAreSharedTakeLessMemory) {
  const ModelShape shape = shapesToShare()[0];
  const Batch batch = batchFor(shape, 0, 8);
  const auto mostOf = [&](bool cutsPlaces) {
    std::vector<Communicator> ranks = Communicator::all(4);
    std::vector<double> most(ranks.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < ranks.size(); ++i)
      threads.emplace_back([&, i] {
        const auto make = [&] {
          makeOne(shape, batch, &ranks[i], Compute::kAsWeights, cutsPlaces);
        };
        most[i] = mostMemoryOf(make);
      });
    for (std::thread& thread : threads) thread.join();
    return most[0];
  };
  const double alike = mostOf(false), shared = mostOf(true);
  EXPECT_LT(shared, 0.8 * alike) << shared << " of " << alike;
}

TEST(TensorParallel, ProductsInBfloat16AreNearThoseOfTheModel) {
  const ModelShape shape = shapesToShare()[0];
  const Batch batch = batchFor(shape, 0, 3);
  const Made whole = makeOne(shape, batch, nullptr, Compute::kAutocastBfloat16);
  for (const bool cutsPlaces : {false, true})
    for (const Made& part : makeInParts(shape, batch, 2, Compute::kAutocastBfloat16, cutsPlaces)) {
      EXPECT_NEAR(part.loss, whole.loss, 2e-3 * whole.loss);
      for (const size_t copied : {size_t{1}, size_t{2}})  // positions, and a norm's gain
        EXPECT_LT(farthest(part.gradients[copied], whole.gradients[copied]), 1e-3);
    }
}

}  // namespace
}  // namespace weft::train
