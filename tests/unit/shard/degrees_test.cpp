// SPDX-License-Identifier: Apache-2.0
// However parameters, gradients and state are sharded, training is the same.
#include "training.h"

namespace weft::test {
using namespace shard;
namespace {

struct Case {
  const char* name;
  int ranks;
  Degrees degrees;
};

class AllDegrees : public testing::TestWithParam<Case> {
 protected:
  Training run() const {
    Training r;
    r.ranks = GetParam().ranks;
    r.config = fp32Config(GetParam().degrees);
    r.microBatches = 2 * r.ranks;
    return r;
  }
};

TEST_P(AllDegrees, AdamWIsThatOfASerialTrainer) {
  const Training r = run();
  const Result sharded = trainAll(r), serial = trainSerially(r);
  EXPECT_LT(farthest(sharded, serial), 2e-5);
  for (std::size_t s = 0; s < serial.outcomes.size(); ++s)
    EXPECT_NEAR(sharded.outcomes[s].gradientNorm, serial.outcomes[s].gradientNorm, 1e-5);
}

TEST_P(AllDegrees, LambWithClippingIsThatOfASerialTrainer) {
  Training r = run();
  r.config.optimizer.kind = Optimizer::Lamb;
  r.clipNorm = 0.5;
  const Result sharded = trainAll(r), serial = trainSerially(r);
  EXPECT_LT(farthest(sharded, serial), 2e-5);
  EXPECT_LT(sharded.outcomes[0].clip, 1);
}

TEST_P(AllDegrees, MomentumIsThatOfASerialTrainer) {
  Training r = run();
  r.config.optimizer.kind = Optimizer::Sgd;
  r.config.optimizer.momentum = 0.9;
  EXPECT_LT(farthest(trainAll(r), trainSerially(r)), 2e-5);
}

TEST_P(AllDegrees, OneWireBf16RoundsEachAddendOnce) {
  Training r = run();
  r.microBatches = r.ranks;
  r.config.wireType = reduce::DType::BF16;
  EXPECT_LT(meanDistance(trainAll(r), trainSerially(r)), 2e-4);  // a step is 1e-2
}

TEST_P(AllDegrees, Bf16ParametersOverFp32Weights) {
  Training r = run();
  r.config.paramType = r.config.wireType = reduce::DType::BF16;
  r.config.rounding = reduce::RoundingMode::Stochastic;
  EXPECT_LT(meanDistance(trainAll(r), trainSerially(r)), 2e-3);  // of weights up to 1
}

TEST_P(AllDegrees, Fp32WeightsMayBeginWithMoreBitsThanTheirParameters) {
  Training r = run();
  r.steps = 0;
  r.config.paramType = reduce::DType::BF16;
  r.resume = [](ShardedOptimizer& shard) -> Status {
    WEFT_TRY(shard.start(0));
    const ShardState& state = shard.state();
    for (std::uint32_t p = 0; p < shard.layout().parameters().size(); ++p) {
      std::vector<float> values(shard.layout().slot(p).elements);
      for (std::uint64_t i = 0; i < values.size(); ++i)
        values[i] = initial(shard.layout().slot(p).parameter, i);
      WEFT_TRY(shard.setWeights(p, values.data()));
    }
    for (std::uint32_t b = 0; b < state.buckets(); ++b) {
      std::vector<float> all;
      WEFT_TRY(gatherArray(shard.mesh(), state, b, 0, &all, 60000));
      for (const std::uint32_t p : shard.layout().buckets()[b].parameters)
        for (std::uint64_t i = 0,
                           at = shard.layout().slot(p).offset - shard.layout().buckets()[b].offset;
             i < shard.layout().slot(p).elements; ++i)
          EXPECT_EQ(all[at + i], initial(p, i)) << "parameter " << p << ", element " << i;
    }
    return {};
  };
  trainAll(r);
}

// The same bits for one rank and for many.
TEST_P(AllDegrees, ReproducibleRunsAreThoseOfOneRank) {
  Training many = run(), one;
  if (many.ranks % 2 != 0) GTEST_SKIP() << "for powers of two";
  for (const Optimizer kind : {Optimizer::AdamW, Optimizer::Lamb}) {
    many.config.reproducible = true;
    many.config.optimizer.kind = kind;
    many.microBatches = 8;
    many.clipNorm = 0.4;
    one = many;
    one.ranks = 1;
    one.config.degrees = {1, 1, 1};
    const Result a = trainAll(many), b = trainAll(one);
    EXPECT_TRUE(a.weights == b.weights);
    for (std::size_t s = 0; s < a.outcomes.size(); ++s)
      EXPECT_EQ(a.outcomes[s].gradientNorm, b.outcomes[s].gradientNorm);
  }
}

std::string nameOf(const testing::TestParamInfo<Case>& tested) { return tested.param.name; }

// Every way of sharing; those that cover all hops where builds are slow.
std::vector<Case> cases() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return {{"alone", 1, {1, 1, 1}},
          {"none2", 2, {1, 1, 1}},
          {"zero1on3", 3, {1, 1, 3}},
          {"mics2on4", 4, {2, 2, 2}},
          {"mixed248", 8, {2, 4, 8}}};
#else
  return {{"alone", 1, {1, 1, 1}},    {"none2", 2, {1, 1, 1}},     {"none4", 4, {1, 1, 1}},
          {"zero1on2", 2, {1, 1, 2}}, {"zero1on3", 3, {1, 1, 3}},  {"zero1on4", 4, {1, 1, 4}},
          {"zero2on2", 2, {1, 2, 2}}, {"zero2on4", 4, {1, 4, 4}},  {"zero3on4", 4, {4, 4, 4}},
          {"mics2on4", 4, {2, 2, 2}}, {"state2on4", 4, {1, 1, 2}}, {"mixed124", 4, {1, 2, 4}},
          {"mixed244", 4, {2, 4, 4}}, {"mixed248", 8, {2, 4, 8}},  {"mixed122on8", 8, {1, 2, 2}}};
#endif
}

INSTANTIATE_TEST_SUITE_P(All, AllDegrees, testing::ValuesIn(cases()), nameOf);

TEST(Eager, StepsAreThoseWithABarrier) {
  for (const int ranks : {2, 3, 4}) {
    Training r;
    r.ranks = r.microBatches = ranks;
    r.config = fp32Config({1, 1, static_cast<std::uint32_t>(ranks)});
    const Result barrier = trainAll(r);
    r.config.eager = true;
    const Result eager = trainAll(r);
    EXPECT_TRUE(eager.weights == barrier.weights);
    EXPECT_EQ(eager.outcomes[1].gradientNorm, barrier.outcomes[1].gradientNorm);
  }
}

TEST(Degrees, AreTheSameBitsAtOneNumberOfRanks) {
  Training r;
  r.ranks = r.microBatches = 4;
  r.clipNorm = 0.3;
  r.config = fp32Config({1, 1, 1});
  const Result none = trainAll(r);
  for (const Degrees d : {Degrees{1, 1, 4}, Degrees{1, 4, 4}, Degrees{4, 4, 4}}) {
    r.config.degrees = d;
    const Result sharded = trainAll(r);
    EXPECT_TRUE(sharded.weights == none.weights) << d.param << d.grad << d.state;
    EXPECT_EQ(sharded.outcomes[2].gradientNorm, none.outcomes[2].gradientNorm);
  }
}

}  // namespace
}  // namespace weft::test
