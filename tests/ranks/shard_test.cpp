// SPDX-License-Identifier: Apache-2.0
// The sharded optimizer through the public API: training, bytes on the wire, memory.
#include <gtest/gtest.h>

#include "shard_training.h"

namespace weft::testing {
namespace {

constexpr int kRanks = 4;
constexpr Degrees kDegrees[] = {{1, 1, 1}, {1, 1, 0}, {1, 0, 0}, {0, 0, 0}, {2, 2, 2}};

std::string nameOf(const Degrees& d) {
  return std::string("{") + std::to_string(d.param) + ", " + std::to_string(d.grad) + ", " +
         std::to_string(d.state) + "}";
}

class Sharded : public ::testing::TestWithParam<Kind> {
 protected:
  static World world() { return {GetParam(), kRanks, "auto", 20000 * kSlowdown}; }
};
INSTANTIATE_TEST_SUITE_P(Worlds, Sharded, ::testing::Values(Kind::Threads, Kind::Processes),
                         [](const auto& p) { return weft::testing::nameOf(p.param); });

TEST_P(Sharded, EveryDegreeTrainsToTheSameWeights) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    weftStepArgs_t args = stepArgs();
    args.clipNorm = 0.5;
    args.weightDecay = 0.1;
    std::vector<float> first;
    for (const Degrees& d : kDegrees) {
      const std::vector<float> weights = train(steps, r, shardConfig(weftFloat32, d), args);
      if (first.empty()) first = weights;
      const bool inRankOrder = d.param != 2;  // else sums of groups are added
      steps.expect(inRankOrder ? weights == first : farthest(weights, first) < 1e-5,
                   nameOf(d) + " trains to other weights");
      steps.expect(areSame(steps, r, weights), nameOf(d) + ": ranks have other weights");
    }
    steps.expect(first.empty() || first[0] != initialAt(0, 0), "nothing was trained");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(Sharded, MicroStepsAccumulateWhateverTheDegree) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    weftStepArgs_t args = stepArgs();
    args.divisor = 2.0 * r.ranks;
    std::vector<float> first;
    for (const Degrees& d : kDegrees) {
      const std::vector<float> weights = train(steps, r, shardConfig(weftFloat32, d), args, 2);
      if (first.empty()) first = weights;
      steps.expect(farthest(weights, first) < 1e-4, nameOf(d) + " trains to other weights");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(Sharded, Bf16ParametersAndWireStayNearFp32) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    const std::vector<float> exact = train(steps, r, shardConfig(weftFloat32), stepArgs());
    for (const Degrees& d : kDegrees) {
      const std::vector<float> weights = train(steps, r, shardConfig(weftBfloat16, d), stepArgs());
      steps.expect(meanDistance(weights, exact) < 2e-3, nameOf(d) + " trains to other weights");
      steps.expect(areSame(steps, r, weights), nameOf(d) + ": ranks have other weights");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(Sharded, EagerStepsAreThoseWithABarrier) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    weftStepArgs_t args = stepArgs();
    args.skipNonFinite = 0;
    for (const weftDataType_t type : {weftFloat32, weftBfloat16}) {
      weftShardConfig_t config = shardConfig(type);
      const std::vector<float> barrier = train(steps, r, config, args);
      config.eager = 1;
      steps.expect(train(steps, r, config, args) == barrier, "eager steps differ");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// SGD with momentum, in the order of operations of the library's.
int sgdStep(const weftRun_t* run, void* user) {
  const float momentum = *static_cast<const float*>(user);
  const auto decay = static_cast<float>(run->weightDecay);
  for (std::size_t i = 0; i < run->elements; ++i) {
    const float g =
        run->gradients[i] * static_cast<float>(run->gradientScale) + run->weights[i] * decay;
    float& v = run->state[0][i];
    v = run->step == 1 ? g : v * momentum + g;
    run->weights[i] -= static_cast<float>(run->learningRate) * v;
  }
  return 0;
}

TEST_P(Sharded, CustomOptimizerIsTheBuiltInOne) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    float momentum = 0.9f;
    weftStepArgs_t args = stepArgs(0.5);
    args.weightDecay = 0.1;
    for (const bool eager : {false, true}) {
      weftShardConfig_t config = shardConfig(weftFloat32);
      config.eager = eager ? 1 : 0;
      args.skipNonFinite = eager ? 0 : 1;
      config.optimizer = weftOptSgd;
      config.momentum = 0.9;
      const std::vector<float> builtIn = train(steps, r, config, args);
      config.optimizer = weftOptCustom;
      config.custom = sgdStep;
      config.user = &momentum;
      const std::vector<float> custom = train(steps, r, config, args);
      steps.expect(farthest(custom, builtIn) < 1e-6, "the custom optimizer differs");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(Sharded, StochasticRoundingIsTheSameOnAllRanks) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    weftShardConfig_t config = shardConfig(weftBfloat16);
    const std::vector<float> nearest = train(steps, r, config, stepArgs());
    config.rounding = weftRoundStochastic;
    config.seed = 7;
    const std::vector<float> random = train(steps, r, config, stepArgs());
    steps.expect(areSame(steps, r, random), "ranks have other weights");
    steps.expect(random != nearest, "stochastic rounding is to nearest");
    steps.expect(meanDistance(random, nearest) < 4e-3, "stochastic rounding is far off");
    config.gradDegree = 0;
    steps.expect(train(steps, r, config, stepArgs()) == random, "the bits depend on the degree");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(Sharded, NormAndClippingAreTheSameOnAllRanks) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    double squares = 0;
    const std::vector<weftParam_t> model = smallModel();
    for (std::size_t p = 0; p < model.size(); ++p) {
      for (std::size_t i = 0; isTrained(model[p]) && i < model[p].elements; ++i) {
        double sum = 0;
        for (int rank = 0; rank < r.ranks; ++rank) sum += gradientAt(rank, p, i);
        squares += sum * sum / r.ranks / r.ranks;
      }
    }
    for (const Degrees& d : kDegrees) {
      Shard shard(steps, r, shardConfig(weftFloat32, d));
      if (!shard.start()) break;
      weftStepArgs_t args = stepArgs();
      args.clipNorm = 0.25;
      const weftStepStats_t stats = shard.step(0, args);
      steps.expect(std::abs(stats.gradientNorm - std::sqrt(squares)) < 1e-5, "wrong norm");
      steps.expect(std::abs(stats.clip * stats.gradientNorm - 0.25) < 1e-9, "wrong clip");
      steps.expect(areSame(steps, r, &stats.gradientNorm, sizeof(double)), "norms differ");
      steps.expect(stats.skipped == 0 && stats.badParam == -1 && stats.badRank == -1, "bad");
      steps.expect(shard.info().steps == 1, "steps are not counted");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(Sharded, MemoryIsThatOfTheFormula) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    const auto bytesFor = [&](const Degrees& d, weftShardInfo_t* info) {
      Shard shard(steps, r, shardConfig(weftBfloat16, d));
      *info = shard.info();
      return info->bytes;
    };
    weftShardInfo_t i{};
    const std::size_t n = static_cast<std::size_t>(r.ranks), slack = 4096;  // the frozen one
    const auto near = [&](std::size_t bytes, std::size_t formula, const char* what) {
      steps.expect(bytes >= formula && bytes <= formula + slack,
                   std::string(what) + ": " + std::to_string(bytes) + " bytes, not " +
                       std::to_string(formula));
    };
    const std::size_t none = bytesFor({1, 1, 1}, &i), p = i.paddedElements;
    near(none, 2 * p + 2 * p + 16 * p, "none");
    steps.expect(i.elements == 3000 + 7 + 5001 + 1 && i.ownElements == p, "wrong elements");
    near(bytesFor({1, 1, 0}, &i), 2 * p + 2 * p + 16 * p / n, "ZeRO-1");
    steps.expect(i.ownElements == p / n, "wrong own elements");
    near(bytesFor({1, 0, 0}, &i), 2 * p + 16 * p / n, "ZeRO-2");
    near(bytesFor({0, 0, 0}, &i), 18 * p / n, "ZeRO-3");
    near(bytesFor({2, 2, 2}, &i), 18 * p / 2, "MiCS");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// Half of it is the reduce-scatter, half the all-gather; an all-reduce and an all-gather are half
// as much again.
TEST_P(Sharded, Zero1MovesTwoThirdsOfAnAllReduceAndAnAllGather) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    Shard shard(steps, r, shardConfig(weftBfloat16));
    if (!shard.start()) return steps.failed();
    const std::uint64_t before = shard.info().wireBytes;
    constexpr int kSteps = 4;
    for (int s = 0; s < kSteps; ++s) shard.step(s, stepArgs());
    const double moved = static_cast<double>(shard.info().wireBytes - before) / kSteps;
    const double elements = static_cast<double>(shard.info().paddedElements);
    const double perElement = moved / elements, fraction = (r.ranks - 1.0) / r.ranks;
    const double words = 4096.0 * r.ranks / elements;  // the norm, and what else ranks agree on
    steps.expect(perElement <= 4.0 * fraction + words && perElement >= 4.0 * fraction,
                 std::to_string(perElement) + " bytes for each element");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(Sharded, BuffersOfTiedAndFrozenParameters) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    Shard shard(steps, r, shardConfig(weftFloat32));
    steps.expect(shard.gradient(kFrozen) == nullptr, "a frozen parameter has a gradient");
    steps.expect(shard.weights(kFrozen) != nullptr, "a frozen parameter has no weights");
    steps.expect(shard.weights(kOutput) == shard.weights(kEmbedding), "tied weights differ");
    steps.expect(shard.gradient(kOutput) == shard.gradient(kEmbedding), "tied gradients differ");
    int buckets[6] = {};
    for (std::size_t p = 0; p < 6; ++p) steps.ok(weftShardBucket(shard, p, &buckets[p]), "bucket");
    steps.expect(buckets[kFrozen] == -1 && buckets[kBias] == 0, "wrong buckets");
    steps.expect(buckets[kOutput] == buckets[kEmbedding], "tied ones are in two buckets");
    steps.expect(shard.start(), "start");
    const std::vector<float> before = shard.collect();
    shard.step(0, stepArgs());
    const std::vector<float> after = shard.collect();
    const std::size_t frozen = 3000 + 7;
    steps.expect(
        std::equal(after.begin() + frozen, after.begin() + frozen + 11, before.begin() + frozen),
        "a frozen parameter was trained");
    for (const std::size_t i : {0u, 3000u, 3018u, 8019u, 11019u})
      steps.expect(before[i] != after[i], "number " + std::to_string(i) + " was not trained");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// A forward that begins before the step before it has ended sees what that makes.
TEST_P(Sharded, ForwardMayRunUnderTheUpdate) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    weftStepArgs_t args = stepArgs();
    args.clipNorm = 0.5;
    for (const Degrees& d : kDegrees) {
      const weftShardConfig_t config = shardConfig(weftFloat32, d);
      Shard shard(steps, r, config);
      if (!shard.start()) return steps.failed();
      std::vector<float> seen;
      for (int s = 0; s < 3; ++s) {
        shard.passes(s, args);
        seen = shard.collect();
        steps.expect(shard.end().gradientNorm > 0, "no norm");
      }
      steps.expect(seen == train(steps, r, config, args), nameOf(d) + " shows other weights");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// The same, and all parameters were asked for before the update is done.
TEST_P(Sharded, PrefetchedParametersAreThoseOfTheUpdate) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    for (const Degrees& d : {Degrees{1, 1, 0}, Degrees{0, 0, 0}, Degrees{2, 2, 2}}) {
      const weftShardConfig_t config = shardConfig(weftFloat32, d);
      Shard shard(steps, r, config);
      if (!shard.start()) return steps.failed();
      std::vector<float> seen;
      for (int s = 0; s < 3; ++s) {
        shard.passes(s, stepArgs());
        for (int b = shard.info().buckets; b-- > 0;)
          steps.ok(weftParamPrefetch(shard, b), "prefetch");
        seen = shard.collect();
        shard.end();
      }
      steps.expect(seen == train(steps, r, config, stepArgs()), nameOf(d) + " shows other weights");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// ZeRO-3: a bucket comes and goes.
TEST_P(Sharded, ReleasedParametersComeBack) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    Shard shard(steps, r, shardConfig(weftFloat32, {0, 0, 0}));
    if (!shard.start()) return steps.failed();
    shard.step(0, stepArgs());
    const std::vector<float> once = shard.collect();
    for (int b = 0; b < shard.info().buckets; ++b) steps.ok(weftParamRelease(shard, b), "release");
    steps.expect(load(shard.weights(kWeight), weftFloat32) == 0, "it is still there");
    steps.expect(shard.collect() == once, "it is not the same again");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

}  // namespace
}  // namespace weft::testing
