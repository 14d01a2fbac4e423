// SPDX-License-Identifier: Apache-2.0
// Models in fp16: their operators, and gradients that overflow.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/train/small_models.h"
#include "tools/train/model.h"
#include "tools/train/models/operators.h"
#include "tools/train/parallel_groups.h"
#include "tools/train/parts_of_model.h"
#include "tools/train/sharding.h"

namespace weft::train {
namespace {

using at::Tensor;

double farthest(const Tensor& a, const Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

using Operator = std::function<Tensor(const std::vector<Tensor>&)>;

// A result and the gradients of its inputs, of inputs of a type.
std::vector<Tensor> valuesOf(const std::vector<Tensor>& inputs, at::ScalarType type,
                             const Operator& compute) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.to(type).detach().requires_grad_(true));
  std::vector<Tensor> values{compute(leaves)};
  EXPECT_EQ(values[0].scalar_type(), type);
  (values[0].to(at::kDouble) * 3).sum().backward();
  for (const Tensor& leaf : leaves) values.push_back(leaf.grad());
  return values;
}

// Of inputs of a type: what libtorch says in fp64, but for the rounding of the result and of each gradient.
void expectRoundedOnce(const char* name, const std::vector<Tensor>& inputs, at::ScalarType type,
                       double rounding, const Operator& compute) {
  const auto rounded = valuesOf(inputs, type, compute);
  const auto exact = valuesOf(inputs, at::kDouble, compute);
  for (size_t i = 0; i < rounded.size(); ++i) {
    const double most = exact[i].abs().max().item<double>();
    EXPECT_EQ(rounded[i].scalar_type(), type);
    EXPECT_LE(farthest(rounded[i], exact[i]), rounding * most) << name << " " << i;
  }
}

TEST(HalfPrecision, OperatorsRoundOnce) {
  at::manual_seed(3);
  const auto some = [](at::IntArrayRef shape) { return at::randn(shape).to(at::kHalf); };
  const Tensor x = some({3, 5, 8}), weight = some({6, 8}), bias = some({6}), gain = some({8}),
               shift = some({8}), other = some({3, 8, 4}), rows = at::tensor({2, 0, 2, 5});
  const auto expectRounded = [](const char* name, const std::vector<Tensor>& inputs,
                                const Operator& compute) {
    expectRoundedOnce(name, inputs, at::kHalf, 0x1p-10, compute);
  };
  expectRounded("linear", {x, weight, bias},
                [](const auto& in) { return ops::linear(in[0], in[1], in[2]); });
  expectRounded("linear alone", {x, weight},
                [](const auto& in) { return ops::linear(in[0], in[1]); });
  expectRounded("matmul", {x, other}, [](const auto& in) { return ops::matmul(in[0], in[1]); });
  expectRounded("norm", {x, gain, shift},
                [](const auto& in) { return ops::layerNorm(in[0], in[1], in[2], 1e-5); });
  expectRounded("gelu", {x}, [](const auto& in) { return ops::gelu(in[0]); });
  expectRounded("gelu tanh", {x}, [](const auto& in) { return ops::gelu(in[0], "tanh"); });
  expectRounded("tanh", {x}, [](const auto& in) { return ops::tanh(in[0]); });
  expectRounded("embedding", {weight}, [&](const auto& in) { return ops::embedding(in[0], rows); });
  const Tensor weights = some({3, 5, 8});  // the sum of a softmax has no gradient
  expectRounded("softmax", {x}, [&](const auto& in) {
    return ops::softmax(in[0]) * weights.to(in[0].scalar_type());
  });
}

// Also where the processor has no products of bf16: those of libtorch itself lose a twentieth here.
TEST(HalfPrecision, ProductsInBfloat16AreSumsInFp32) {
  at::manual_seed(3);
  const Tensor x = at::randn({32, 2048}).to(at::kBFloat16),
               y = at::randn({2048, 64}).to(x.options()),
               weight = at::randn({64, 2048}).to(x.options());
  expectRoundedOnce("matmul", {x, y}, at::kBFloat16, 0x1p-8,
                    [](const auto& in) { return ops::matmul(in[0], in[1]); });
  expectRoundedOnce("linear", {x, weight}, at::kBFloat16, 0x1p-8,
                    [](const auto& in) { return ops::linear(in[0], in[1]); });
}

TEST(HalfPrecision, SumsOfManyGradientsAreNotThoseOfFp16) {
  const Tensor table = at::zeros({1, 1}, at::kHalf).requires_grad_(true);
  ops::embedding(table, at::zeros({5000}, at::kLong)).sum().backward();
  EXPECT_EQ(table.grad().item<float>(), 5000) << "fp16 stays at 2048, of 1 + 1 + ...";
}

// One rank of a training, some of whose steps overflow on one rank.
struct Training {
  Options options;
  std::vector<int> batches;  // one a step
  int plantedStep = -1, plantedRank = -1;
};
struct Trained {
  std::vector<int> skipped = {};
  std::vector<double> norms = {};
  std::vector<std::vector<uint16_t>> weights = {};
  int badRank = -1;
};

Trained train(const Training& training, Communicator& all) {
  const Options& o = training.options;
  ParallelGroups groups(all, anyPartOf(o), false);
  const Parameters own = parametersOf(o.shape, groups.part());
  ShardedParameters shard(o, groups, own);
  Model model(o.shape, Compute::kAsWeights, Element::kFloat16, Element::kFloat32, shard.memory(),
              groups.model());
  int step = 0;
  model.onLayer({[&](size_t first, size_t, Pass pass) { shard.acquire(first, pass); },
                 [&](size_t first, size_t, Pass pass) { shard.release(first, pass); }});
  model.onGradient([&](size_t parameter) {
    const bool isPlanted = step == training.plantedStep && all.rank() == training.plantedRank;
    if (isPlanted && parameter + 1 == own.list.size())
      static_cast<float*>(shard.memoryOf(parameter).gradient)[0] = INFINITY;
    check(weftGradReady(shard, parameter));
  });
  model.initialize(7);
  check(weftShardStart(shard, 0));
  Trained made;
  for (const int batch : training.batches) {
    const auto first = static_cast<uint64_t>(batch * 8 + 2 * groups.data().rank());
    model.forward(batchFor(o.shape, first, 2));
    weftStepArgs_t args = WEFT_STEP_ARGS_INITIALIZER;
    args.lossScale = 1024;
    args.clipNorm = 1;
    check(weftStepBegin(shard, &args));
    model.backward(args.lossScale);
    check(weftGradDone(shard));
    weftStepStats_t stats{};
    stats.size = sizeof(stats);
    check(weftStepWait(shard, &stats));
    made.skipped.push_back(stats.skipped);
    made.norms.push_back(stats.gradientNorm);
    if (stats.badRank >= 0)
      made.badRank = static_cast<int>(groups.rankOf(stats.badPart, stats.badRank));
    ++step;
  }
  shard.acquireAll();
  for (size_t i = 0; i < own.list.size(); ++i) {
    const auto* bits = static_cast<const uint16_t*>(shard.memoryOf(i).weights);
    made.weights.emplace_back(bits, bits + own.list[i].size());
  }
  return made;
}

std::vector<Trained> trainOnFour(const Training& training) {
  std::vector<Communicator> ranks = Communicator::all(4);
  std::vector<Trained> made(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] { made[i] = train(training, ranks[i]); });
  for (std::thread& thread : threads) thread.join();
  return made;
}

Options halfOptions(const std::string& shard, int64_t tensor, int64_t pipeline) {
  Options options = optionsOf("gpt");
  options.params = Params::kFloat16;
  options.shard = shard;
  options.tensor = tensor;
  options.pipeline = pipeline;
  options.bucketMb = 0.05;
  return options;
}

// As if the batch had never been: no weight and no moment has changed.
TEST(HalfPrecision, AnOverflowOfOneRankSkipsTheStepOnAll) {
  for (const auto& [scheme, tensor, pipeline] : {std::tuple{"none", 1, 1},
                                                 {"zero1", 1, 1},
                                                 {"zero2", 1, 1},
                                                 {"zero3", 1, 1},
                                                 {"mics", 1, 1},
                                                 {"zero1", 2, 1},
                                                 {"zero3", 1, 2}}) {
    SCOPED_TRACE(fmt::format("{}, tensor {}, pipeline {}", scheme, tensor, pipeline));
    const Options options = halfOptions(scheme, tensor, pipeline);
    const std::vector<Trained> undisturbed = trainOnFour({options, {0, 1, 3}});
    const std::vector<Trained> planted = trainOnFour({options, {0, 1, 2, 3}, 2, 2});
    for (size_t r = 0; r < planted.size(); ++r) {
      EXPECT_EQ(planted[r].skipped, (std::vector{0, 0, 1, 0})) << r;
      EXPECT_EQ(planted[r].badRank, 2) << r;
      EXPECT_EQ(planted[r].norms[3], undisturbed[r].norms[2]) << r;
      EXPECT_GT(planted[r].norms[3], 0.1) << "it is not that of scaled gradients, nor nothing";
      EXPECT_LT(planted[r].norms[3], 50) << r;
      EXPECT_TRUE(planted[r].weights == undisturbed[r].weights) << r;
    }
  }
}

}  // namespace
}  // namespace weft::train
