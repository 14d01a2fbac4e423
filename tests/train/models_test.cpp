// SPDX-License-Identifier: Apache-2.0
// The models on tensors: what they compute, and that it does not depend on where weights come from.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/train/small_models.h"
#include "tools/train/model.h"
#include "tools/train/models/libtorch_error.h"
#include "tools/train/models/rotary.h"
#include "tools/train/models/rotation.h"

namespace weft::train {
namespace {

// All parameters of a shape, one after another.
template <class Weight, class Gradient>
std::vector<ParameterMemory> packed(const ModelShape& shape, Weight* weights, Gradient* gradients) {
  std::vector<ParameterMemory> memory;
  size_t at = 0;
  for (const Parameter& parameter : parametersOf(shape).list) {
    memory.push_back({weights + at, gradients + at});
    at += parameter.size();
  }
  return memory;
}

// Where a parameter lies among them.
struct Run {
  size_t offset, size;
};
Run runOf(const ModelShape& shape, size_t parameter) {
  const std::vector<Parameter> list = parametersOf(shape).list;
  size_t at = 0;
  for (size_t i = 0; i < parameter; ++i) at += list[i].size();
  return {at, list[parameter].size()};
}

// A model with its buffers.
struct Instance {
  ModelShape shape;
  std::vector<float> weights, gradients;
  Model model;

  explicit Instance(const ModelShape& s, Compute compute = Compute::kAsWeights)
      : shape(s),
        weights(parametersOf(s).size()),
        gradients(weights.size()),
        model(s, compute, Element::kFloat32, Element::kFloat32,
              packed(s, weights.data(), gradients.data())) {
    model.initialize(7);
  }

  double step(const Batch& batch) {
    const double loss = model.forward(batch);
    model.backward(1.0);
    return loss;
  }
};

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

TEST(Models, GradientsAreTheSlopeOfTheLoss) {
  for (const ModelShape& shape : allShapes()) {
    Instance instance(shape);
    const Batch batch = batchFor(shape, 0, 3);
    instance.step(batch);
    const double norm = std::sqrt(dot(instance.gradients, instance.gradients));
    ASSERT_GT(norm, 0.1);
    const double step = 0.005 / norm;
    const std::vector<float> start = instance.weights;
    double losses[2];
    for (const int side : {0, 1}) {
      for (size_t i = 0; i < start.size(); ++i) {
        instance.weights[i] =
            start[i] + static_cast<float>((2 * side - 1) * step) * instance.gradients[i];
      }
      losses[side] = instance.model.forward(batch);
    }
    EXPECT_NEAR((losses[1] - losses[0]) / (2 * step), norm * norm, 0.01 * norm * norm);
  }
}

TEST(Models, AreBuiltWithoutTouchingTheBuffers) {
  const ModelShape shape = namedShape("bert-1.5b");
  const size_t bytes = parametersOf(shape).size() * sizeof(float);
  void* nothing = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(nothing, MAP_FAILED);
  {
    auto* const at = static_cast<float*>(nothing);
    const Model model(shape, Compute::kAsWeights, Element::kFloat32, Element::kFloat32,
                      packed(shape, at, at));
    EXPECT_GT(parametersOf(shape).size(), 1'500'000'000u);
  }
  munmap(nothing, bytes);
}

TEST(Models, AUniformGuessIsWhereTheyStart) {
  for (const ModelShape& shape : allShapes()) {
    Instance instance(shape);
    const double guess = std::log(static_cast<double>(shape.vocabulary)) +
                         (shape.family == Family::kBert ? std::log(2.0) : 0.0);
    EXPECT_NEAR(instance.model.forward(batchFor(shape, 0, 4)), guess, 0.5);
  }
}

TEST(Models, SplittingABatchMakesNoDifference) {
  for (const ModelShape& shape : allShapes()) {
    Instance whole(shape), parts(shape);
    const double loss = whole.step(batchFor(shape, 0, 12));
    double mean = 0;
    for (const uint64_t first : {0u, 4u, 8u}) {
      mean += parts.model.forward(batchFor(shape, first, 4)) / 3;
      parts.model.backward(1.0 / 3);
    }
    EXPECT_NEAR(loss, mean, 1e-5);
    for (size_t i = 0; i < whole.gradients.size(); ++i) {
      ASSERT_NEAR(whole.gradients[i], parts.gradients[i], 1e-5);
    }
  }
}

TEST(Models, TheFutureAndThePaddingAreNotSeen) {
  for (const ModelShape& shape : allShapes()) {
    Instance instance(shape);
    Batch batch = batchFor(shape, 0, 32);
    const auto forget = [&](size_t row, size_t from, bool targets) {
      for (size_t i = row * batch.length + from; i < (row + 1) * batch.length; ++i) {
        if (targets) {
          batch.targets[i] = Batch::kNoTarget;
        } else {
          batch.tokens[i] = 1;
        }
      }
    };
    const auto seen = [&](size_t row) {
      return batch.used.empty() ? size_t{10} : static_cast<size_t>(batch.used[row]);
    };
    for (size_t row = 0; row < batch.samples; ++row) forget(row, seen(row), true);
    const double loss = instance.model.forward(batch);
    for (size_t row = 0; row < batch.samples; ++row) forget(row, seen(row), false);
    EXPECT_EQ(instance.model.forward(batch), loss);
    batch.tokens[0] = 1;
    EXPECT_NE(instance.model.forward(batch), loss);
  }
}

TEST(Models, ALayerIsReadOnlyWhileItIsInUse) {
  for (const Compute compute : {Compute::kAsWeights, Compute::kAutocastBfloat16}) {
    for (const ModelShape& shape : allShapes()) {
      Instance plain(shape, compute), guarded(shape, compute);
      const Batch batch = batchFor(shape, 0, 3);
      const std::vector<float> home = guarded.weights;
      std::fill(guarded.weights.begin(), guarded.weights.end(), std::nanf(""));
      std::vector<int> uses[2];  // +first when a use starts, -first when it ends
      const auto fill = [&](size_t first, size_t count, bool real) {
        for (size_t i = first; i < first + count; ++i) {
          const auto [offset, size] = runOf(shape, i);
          for (size_t k = offset; k < offset + size; ++k) {
            guarded.weights[k] = real ? home[k] : std::nanf("");
          }
        }
      };
      guarded.model.onLayer({[&](size_t first, size_t count, Pass pass) {
                               fill(first, count, true);
                               uses[pass == Pass::kBackward].push_back(static_cast<int>(first) + 1);
                             },
                             [&](size_t first, size_t count, Pass pass) {
                               fill(first, count, false);
                               uses[pass == Pass::kBackward].push_back(-static_cast<int>(first) -
                                                                       1);
                             }});
      EXPECT_EQ(plain.step(batch), guarded.step(batch));
      EXPECT_EQ(plain.gradients, guarded.gradients);
      for (const float weight : guarded.weights) ASSERT_TRUE(std::isnan(weight));
      EXPECT_EQ(uses[0].size(), uses[1].size());
      EXPECT_EQ(std::accumulate(uses[0].begin(), uses[0].end(), 0), 0);
      EXPECT_EQ(std::accumulate(uses[1].begin(), uses[1].end(), 0), 0);
    }
  }
}

TEST(Models, GradientsOfALayerAreCompleteWhenItsBackwardEnds) {
  for (const ModelShape& shape : allShapes()) {
    Instance instance(shape);
    std::vector<bool> complete(parametersOf(shape).list.size());
    size_t gradients = 0;
    instance.model.onGradient([&](size_t parameter) {
      complete[parameter] = true;
      ++gradients;
    });
    std::vector<size_t> ended;
    instance.model.onLayer({{}, [&](size_t first, size_t count, Pass pass) {
                              if (pass == Pass::kForward) return;
                              ended.push_back(first);
                              // A tied embedding is complete only after its other use.
                              if (first == 0 && ended.size() == 1) return;
                              for (size_t i = first; i < first + count; ++i) {
                                EXPECT_TRUE(complete[i]) << i;
                              }
                            }});
    instance.step(batchFor(shape, 0, 2));
    EXPECT_EQ(gradients, complete.size());
    EXPECT_EQ(ended.back(), 0u);
  }
}

float fromBfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

TEST(Models, WeightsMayBeBfloat16) {
  for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
    for (const ModelShape& shape : allShapes()) {
      Instance reference(shape);
      const size_t n = reference.weights.size();
      std::vector<uint16_t> weights(n), halves(n);
      std::vector<float> floats(n);
      Model model(shape, Compute::kAsWeights, Element::kBfloat16, element,
                  element == Element::kFloat32 ? packed(shape, weights.data(), floats.data())
                                               : packed(shape, weights.data(), halves.data()));
      model.initialize(7);
      for (size_t i = 0; i < weights.size(); ++i) reference.weights[i] = fromBfloat16(weights[i]);
      const Batch batch = batchFor(shape, 0, 4);
      EXPECT_NEAR(model.forward(batch), reference.step(batch), 0.05);
      model.backward(1.0);
      for (size_t i = 0; element == Element::kBfloat16 && i < halves.size(); ++i) {
        floats[i] = fromBfloat16(halves[i]);
      }
      const double cosine =
          dot(floats, reference.gradients) /
          std::sqrt(dot(floats, floats) * dot(reference.gradients, reference.gradients));
      EXPECT_GT(cosine, 0.99);
    }
  }
}

// Queries against keys of one head, [length, length].
at::Tensor scores(const at::Tensor& queries, const at::Tensor& keys, Rotary form) {
  const Rotation turn(queries.size(-2), queries.size(-1), form);
  return at::matmul(turn(queries), turn(keys).transpose(-2, -1));
}

// The line and the exit code of what `action` throws.
template <class Action>
std::pair<std::string, int> failureOfAction(Action action) {
  try {
    action();
  } catch (const c10::Error& error) {
    const Failure failure = failureOf(error);
    return {failure.what(), failure.code()};
  }
  return {"nothing", 0};
}

TEST(LibtorchErrors, AreALineWithoutABacktrace) {
  const auto [line, code] = failureOfAction([] { at::empty({int64_t{1} << 50}, at::kByte); });
  EXPECT_EQ(line,
            "there is no memory for a tensor of 1.13e+06 GB; lower --seq, --batch or the model's "
            "sizes");
  EXPECT_EQ(code, 78);
  const auto [other, bug] = failureOfAction([] { at::ones({2}) + at::ones({3}); });
  EXPECT_EQ(other.find("libtorch: The size of tensor a"), 0u) << other;
  EXPECT_EQ(other.find('\n'), std::string::npos);
  EXPECT_EQ(bug, 70);
}

TEST(ZeroFrequencies, AreExactAfterReorderingRowsAndWrongWithoutIt) {
  constexpr int64_t kHeadWidth = 64;
  at::Generator generator = at::detail::createCPUGenerator(5);
  const at::Tensor queries = at::randn({1, 1, 128, kHeadWidth}, generator),
                   keys = at::randn({1, 1, 128, kHeadWidth}, generator);
  const at::Tensor partial = scores(queries, keys, Rotary::kPartial);
  const auto error = [&](const at::Tensor& q, const at::Tensor& k) {
    return (scores(q, k, Rotary::kZeroFrequency) - partial).abs().max().item<float>();
  };
  const std::vector<int64_t> rows = zeroFrequencyOrder(kHeadWidth, rotaryRows(kHeadWidth));
  const at::Tensor order = at::tensor(rows), inverse = at::tensor(inverseOrder(rows));
  const at::Tensor q = queries.index_select(-1, order), k = keys.index_select(-1, order);
  EXPECT_LT(error(q, k), 2e-5f);
  EXPECT_GT(error(queries, keys), 1.0f);
  EXPECT_TRUE(q.index_select(-1, inverse).equal(queries));
}

TEST(ZeroFrequencies, GiveTheSameModel) {
  const ModelShape partial = optionsOf("neox").shape;
  ModelShape whole = partial;
  whole.rotary = Rotary::kZeroFrequency;
  Instance a(partial), b(whole), unordered(whole);
  const Batch batch = batchFor(partial, 0, 4);
  for (float& weight : a.weights) weight *= 2;  // attention that looks at some more than at others
  for (float& weight : b.weights) weight *= 2;
  unordered.weights = a.weights;
  const double loss = a.step(batch);
  EXPECT_NEAR(b.step(batch), loss, 4e-6);
  EXPECT_GT(std::abs(unordered.step(batch) - loss), 1e-4);

  const std::vector<int64_t> order =
      zeroFrequencyQkvOrder(partial.heads, partial.hidden / partial.heads);
  const std::vector<Parameter> list = parametersOf(partial).list;
  for (size_t i = 0; i < list.size(); ++i) {
    const auto [offset, size] = runOf(partial, i);
    const bool reordered = list[i].name.find("qkv") != std::string::npos;
    const size_t columns = list[i].shape.size() == 2 ? static_cast<size_t>(list[i].shape[1]) : 1;
    for (size_t k = 0; k < size; ++k) {
      const size_t row = k / columns,
                   from = reordered ? static_cast<size_t>(order[row]) * columns + k % columns : k;
      ASSERT_EQ(b.weights[offset + k], a.weights[offset + from]) << list[i].name;
      ASSERT_NEAR(b.gradients[offset + k], a.gradients[offset + from], 1e-5) << list[i].name;
    }
  }
}

}  // namespace
}  // namespace weft::train
