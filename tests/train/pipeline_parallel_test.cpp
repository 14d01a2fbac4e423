// SPDX-License-Identifier: Apache-2.0
// Models in stages, by threads that pass micro-batches on to each other, beside whole ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/train/small_models.h"
#include "tools/train/model.h"
#include "tools/train/parallel_groups.h"
#include "tools/train/pipeline_schedule.h"

namespace weft::train {
namespace {

// What a rank has made of the micro-batches of a step.
struct Passed {
  Parameters own;
  std::vector<double> losses, evaluated;
  std::vector<std::vector<float>> gradients;  // by parameter
};

Passed passOne(const ModelShape& shape, int64_t micros, const ModelGroups& groups,
               Compute compute = Compute::kAsWeights) {
  const PipelineStage& stage = groups.part.stage;
  Passed passed{parametersOf(shape, groups.part), {}, {}, {}};
  std::vector<std::vector<float>> weights;
  for (const Parameter& p : passed.own.list) weights.emplace_back(p.size());
  passed.gradients = weights;
  std::vector<ParameterMemory> memory;
  for (size_t i = 0; i < weights.size(); ++i)
    memory.push_back({weights[i].data(), passed.gradients[i].data()});
  Model model(shape, compute, Element::kFloat32, Element::kFloat32, memory, groups);
  model.initialize(7);
  const auto batch = [&](int64_t micro) {
    return batchFor(shape, static_cast<uint64_t>(2 * micro), 2);
  };
  passed.evaluated.resize(static_cast<size_t>(micros));
  passed.losses = passed.evaluated;
  for (const auto& [pass, micro, own] : forwards(stage, micros))
    passed.evaluated[static_cast<size_t>(micro)] = model.evaluate(batch(micro), own);
  for (const auto& [pass, micro, own] : oneForwardOneBackward(stage, micros)) {
    if (pass == Pass::kForward)
      passed.losses[static_cast<size_t>(micro)] = model.forward(batch(micro), own);
    else
      model.backward(1.0, own);
  }
  return passed;
}

std::vector<Passed> passInStages(const ModelShape& shape, int64_t micros, const PipelineStage& any,
                                 Compute compute = Compute::kAsWeights) {
  std::vector<Communicator> ranks = Communicator::all(static_cast<int>(any.count));
  std::vector<Passed> passed(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < passed.size(); ++i)
    threads.emplace_back([&, i] {
      ParallelGroups groups(ranks[i], {{}, any}, false);
      passed[i] = passOne(shape, micros, groups.model(), compute);
    });
  for (std::thread& thread : threads) thread.join();
  return passed;
}

// Of all stages by parameter of the whole model; a tied embedding's in two of them.
std::vector<std::vector<float>> gradientsOf(const std::vector<Passed>& stages, size_t parameters) {
  std::vector<std::vector<float>> all(parameters);
  for (const Passed& stage : stages)
    for (size_t i = 0; i < stage.gradients.size(); ++i) {
      std::vector<float>& sum = all[stage.own.inWhole[i]];
      sum.resize(stage.gradients[i].size());
      std::ranges::transform(sum, stage.gradients[i], sum.begin(), std::plus<>());
    }
  return all;
}

void expectThoseOf(const Passed& whole, const std::vector<Passed>& stages) {
  EXPECT_EQ(stages.back().losses, whole.losses);
  EXPECT_EQ(stages.back().evaluated, whole.evaluated);
  const auto gradients = gradientsOf(stages, whole.gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    ASSERT_EQ(gradients[i].size(), whole.gradients[i].size()) << whole.own.list[i].name;
    float farthest = 0;
    for (size_t k = 0; k < gradients[i].size(); ++k)
      farthest = std::max(farthest, std::abs(gradients[i][k] - whole.gradients[i][k]));
    EXPECT_LT(farthest, 1e-6) << whole.own.list[i].name;
  }
  for (const Passed& stage : stages) {
    if (&stage == &stages.back()) continue;
    EXPECT_EQ(std::accumulate(stage.losses.begin(), stage.losses.end(), 0.0), 0.0);
  }
}

TEST(PipelineParallel, StagesAreTheModel) {
  for (ModelShape shape : allShapes()) {
    shape.layers = 3;
    for (const auto& [stages, micros] : {std::pair{2, 3}, std::pair{3, 2}}) {
      SCOPED_TRACE(fmt::format("family {} in {} stages", static_cast<int>(shape.family), stages));
      expectThoseOf(passOne(shape, micros, {}), passInStages(shape, micros, {0, stages}));
    }
  }
}

TEST(PipelineParallel, VirtualStagesAreTheModel) {
  for (ModelShape shape : allShapes()) {
    shape.layers = 4;
    SCOPED_TRACE(fmt::format("family {}", static_cast<int>(shape.family)));
    expectThoseOf(passOne(shape, 4, {}), passInStages(shape, 4, {0, 2, 2}));
  }
}

TEST(PipelineParallel, AnOddNumberOfStagesIsARingAsWell) {
  ModelShape shape = allShapes()[0];
  shape.layers = 9;
  expectThoseOf(passOne(shape, 6, {}), passInStages(shape, 6, {0, 3, 3}));
}

TEST(PipelineParallel, StagesHaveTheBlocksThatTheyAreGiven) {
  ModelShape shape = allShapes()[0];
  shape.layers = 7;
  const std::vector<Passed> passed = passInStages(shape, 2, {0, 2, 2, {3, 1, 1, 2}});
  EXPECT_EQ(passed[0].own.runs, (std::vector<std::vector<size_t>>{{0, 1, 2, 3}, {4}}));
  expectThoseOf(passOne(shape, 2, {}), passed);
}

TEST(PipelineParallel, ProductsInBfloat16AreThoseOfTheModel) {
  const ModelShape shape = allShapes()[0];
  const Passed whole = passOne(shape, 2, {}, Compute::kAutocastBfloat16);
  const Passed last = passInStages(shape, 2, {0, 2}, Compute::kAutocastBfloat16).back();
  EXPECT_EQ(last.losses, whole.losses);
}

// A stage that has died is an error of its neighbours, at once.
TEST(PipelineParallel, ALostStageIsNamed) {
  const ModelShape shape = allShapes()[0];
  std::vector<Communicator> activations = Communicator::all(2), gradients = Communicator::all(2);
  std::thread first([gone = std::move(activations[0])]() mutable { gone.abort(); });
  try {
    passOne(shape, 1, {{{}, {1, 2}}, nullptr, {&activations[1], &gradients[1]}, {}});
    FAIL() << "who sent the activations?";
  } catch (const Error& error) {
    EXPECT_EQ(error.info().rank, 0) << error.what();
  }
  first.join();
}

}  // namespace
}  // namespace weft::train
