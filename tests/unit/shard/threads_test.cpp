// SPDX-License-Identifier: Apache-2.0
// Several threads a rank: they share sums and steps, and the bits are those of one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "tests/unit/slow_build.h"
#include "training.h"

namespace weft::test {
namespace {

// Where whatever may be shared is.
[[maybe_unused]] const int slowly =
    ::setenv("WEFT_TUNE_FILE", WEFT_MACHINES "/slow_copies.machine", 1);

// Each piece on a thread of its own, and how many jobs there were.
void onNewThreads(void* jobs, int n, engine::Team::Body body, void* arg) {
  static_cast<std::atomic<int>*>(jobs)->fetch_add(1);
  std::vector<std::thread> threads;
  for (int i = 1; i < n; ++i) threads.emplace_back(body, arg, i);
  body(arg, 0);
  for (std::thread& thread : threads) thread.join();
}

// Buckets of several tiles for each of two ranks, and parameters that end inside of one.
std::vector<ParameterSpec> longModel() {
  return {{.name = "embedding", .elements = 90000},
          {.name = "norm", .elements = 70, .noDecay = true},
          {.name = "weight", .elements = 50021}};
}

Training longRun(int ranks, const ShardConfig& config) {
  Training run;
  run.ranks = ranks;
  run.steps = 2;
  run.microBatches = 2 * ranks;
  run.config = config;
  run.config.bucketElements = 50000;
  run.model = longModel();
  return run;
}

// SGD, of the caller's own, which is one thread's.
Status customStep(const StateRun& run, const StepSettings& settings) {
  auto* const weights = static_cast<float*>(run.slice.weights);
  for (std::size_t i = 0; i < run.slice.n; ++i)
    weights[i] -=
        static_cast<float>(settings.learningRate * settings.gradientScale) * run.gradients[i];
  return {};
}

ShardConfig configOf(Optimizer kind, std::uint32_t ranks, reduce::DType type) {
  ShardConfig config = fp32Config({1, 1, ranks});
  config.paramType = config.gradType = config.wireType = type;
  config.optimizer.kind = kind;
  config.optimizer.momentum = 0.9;
  if (kind == Optimizer::Custom) config.optimizer.custom = customStep;
  return config;
}

// All optimizers, and all that is shared.
std::vector<ShardConfig> configsFor(std::uint32_t ranks) {
  using enum Optimizer;
  std::vector<ShardConfig> all;
  std::vector<reduce::DType> types{reduce::DType::BF16};
  if (!kSlowBuild) types.push_back(reduce::DType::F32);
  for (const reduce::DType type : types)
    for (const Optimizer kind : {AdamW, Lamb, Lans, Sgd, Custom})
      all.push_back(configOf(kind, ranks, type));
  all.push_back(configOf(AdamW, ranks, reduce::DType::BF16));
  all.back().wireType = reduce::DType::F32;
  all.push_back(configOf(AdamW, ranks, reduce::DType::F32));
  all.back().reproducible = true;
  if (ranks == 1) return all;
  all.push_back(configOf(AdamW, ranks, reduce::DType::BF16));
  all.back().degrees = {ranks, ranks, ranks};
  for (const Optimizer kind : {AdamW, Sgd}) {
    all.push_back(configOf(kind, ranks, reduce::DType::BF16));
    all.back().eager = true;
  }
  return all;
}

void expectSame(const Result& one, const Result& other) {
  EXPECT_TRUE(one.hasBitsOf(other));
  ASSERT_EQ(one.outcomes.size(), other.outcomes.size());
  for (std::size_t i = 0; i < one.outcomes.size(); ++i)
    EXPECT_EQ(one.outcomes[i].gradientNorm, other.outcomes[i].gradientNorm);
}

TEST(ShardThreads, StepToTheSameBits) {
  for (const std::uint32_t ranks : {1u, 2u})
    for (const ShardConfig& config : configsFor(ranks)) {
      SCOPED_TRACE(testing::Message()
                   << ranks << " ranks, optimizer " << static_cast<int>(config.optimizer.kind));
      Training run = longRun(static_cast<int>(ranks), config);
      const Result alone = trainAll(run);
      std::atomic<int> jobs{0};
      for (const int threads : kSlowBuild ? std::vector{3} : std::vector{2, 3, 8}) {
        run.threads = threads;
        run.pool = {};
        expectSame(trainAll(run), alone);
        run.pool = {onNewThreads, &jobs};
        if (!kSlowBuild) expectSame(trainAll(run), alone);
      }
    }
}

// Of one rank, which has no calls to make: the sums and the step of each bucket.
TEST(ShardThreads, ShareTheWorkOfARankAlone) {
  for (const Optimizer kind : {Optimizer::AdamW, Optimizer::Lamb, Optimizer::Custom}) {
    Training run = longRun(1, configOf(kind, 1, reduce::DType::BF16));
    const auto jobsIn = [&](int steps) {
      std::atomic<int> jobs{0};
      run.threads = 3;
      run.pool = {onNewThreads, &jobs};
      run.steps = steps;
      trainAll(run);
      return jobs.load();
    };
    const int buckets = 2;
    const int each = kind == Optimizer::AdamW ? 2 : kind == Optimizer::Lamb ? 3 : 1;
    EXPECT_EQ(jobsIn(3) - jobsIn(1), 2 * buckets * each) << static_cast<int>(kind);
  }
}

// What is not finite is counted, and named, as by one thread: in sums, and in eager steps.
TEST(ShardThreads, FindTheFirstThatIsNotFinite) {
  for (const bool eager : {false, true}) {
    Training run = longRun(2, configOf(Optimizer::AdamW, 2, reduce::DType::BF16));
    run.config.eager = eager;
    run.inBackward = [](ShardedOptimizer& shard) {
      auto* const gradients = reinterpret_cast<std::uint16_t*>(shard.state().gradient(2));
      gradients[10] = gradients[40000] = 0x7f80;  // infinity
    };
    for (const int threads : {1, 2, 3, 8}) {
      run.threads = threads;
      const Result result = trainAll(run);
      EXPECT_EQ(result.outcomes[0].nonFinite, 2U);
      EXPECT_EQ(result.outcomes[0].badParameter, 2);
      EXPECT_EQ(result.outcomes[0].badRank, 0);
    }
  }
}

}  // namespace
}  // namespace weft::test
