// SPDX-License-Identifier: Apache-2.0
// However parameters, gradients and state are sharded, training is the same.
#include <array>
#include <atomic>
#include <limits>

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

TEST_P(AllDegrees, LambAndLansWithClippingAreThoseOfASerialTrainer) {
  Training r = run();
  r.clipNorm = 0.5;
  for (const Optimizer kind : {Optimizer::Lamb, Optimizer::Lans}) {
    r.config.optimizer.kind = kind;
    r.config.optimizer.epsilon = 1e-6;
    const Result sharded = trainAll(r), serial = trainSerially(r);
    EXPECT_LT(farthest(sharded, serial), 2e-5);
    EXPECT_LT(sharded.outcomes[0].clip, 1);
  }
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
  for (const Optimizer kind : {Optimizer::AdamW, Optimizer::Lamb, Optimizer::Lans}) {
    many.config.reproducible = true;
    many.config.optimizer.kind = kind;
    many.microBatches = 24;
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

// Any number of ranks that divides the micro-batches.
TEST(Reproducible, StepsAreThoseOfOneRankOnAnyNumberOfRanks) {
  Training run;
  run.steps = 2;
  run.config = fp32Config({1, 1, 1});
  run.config.reproducible = true;
  for (const int micros : {11, 24, 30, 35}) {
    run.ranks = 1;
    run.microBatches = micros;
    run.config.degrees = {1, 1, 1};
    const Result one = trainAll(run);
    for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 11}) {
      if (micros % ranks != 0) continue;
      run.ranks = ranks;
      const auto n = static_cast<std::uint32_t>(ranks);
      const Degrees all[] = {{1, 1, 1}, {1, 1, n}, {1, n, n}, {n, n, n}};
      run.config.degrees = all[ranks % 4];
      EXPECT_TRUE(trainAll(run).hasBitsOf(one)) << micros << " micro-batches on " << ranks;
    }
  }
  run.ranks = 6;
  run.microBatches = 30;
  run.config.degrees = {2, 2, 2};
  const Result groups = trainAll(run);
  run.ranks = 1;
  run.config.degrees = {1, 1, 1};
  EXPECT_TRUE(groups.hasBitsOf(trainAll(run)));
}

TEST(Reproducible, GroupsOfOtherThanPowersOfTwoAreRefused) {
  Training run;
  run.ranks = run.microBatches = 6;
  run.config = fp32Config({3, 3, 3});
  run.config.reproducible = true;
  Status status;
  trainAll(run, &status);
  EXPECT_NE(status.text().find("groups of 3 inside of others"), std::string::npos) << status.text();
}

// An infinity of an early run is that of the rank that brought it.
TEST(Reproducible, WhatIsNotFiniteIsBlamedOnItsRank) {
  Training run;
  run.ranks = 3;
  run.steps = 1;
  run.microBatches = 9;
  run.config = fp32Config({1, 1, 3});
  run.config.reproducible = true;
  std::atomic<int> passes{0};
  run.inBackward = [&](ShardedOptimizer& shard) {
    if (shard.mesh().rank() == 1 && passes++ == 1)
      *reinterpret_cast<float*>(shard.state().gradient(3)) = std::numeric_limits<float>::infinity();
  };
  const Result result = trainAll(run);
  EXPECT_TRUE(result.outcomes[0].skipped);
  EXPECT_EQ(result.outcomes[0].badParameter, 3);
  EXPECT_EQ(result.outcomes[0].badRank, 1);
}

TEST(Reproducible, MicroStepsMustBeWhatTheyAreSaidToBe) {
  comm::CommConfig config;
  std::vector<std::shared_ptr<comm::Communicator>> comms;
  ASSERT_TRUE(comm::createAll(2, config, &comms).ok());
  std::array<std::unique_ptr<ShardedOptimizer>, 2>
      shards;  // whoever is through first ends no other's step
  const Status status = onThreads(2, [&](std::size_t r) -> Status {
    std::unique_ptr<ShardedOptimizer>& shard = shards[r];
    ShardConfig wanted = fp32Config({1, 1, 2});
    wanted.reproducible = true;
    WEFT_TRY(ShardedOptimizer::create(*comms[r], wanted, smallModel(), &shard));
    WEFT_TRY(shard->start(0));
    const auto begin = [&](bool boundary, std::uint32_t microSteps) {
      MicroStepArgs args;
      args.boundary = boundary;
      args.microSteps = microSteps;
      return shard->begin(args).text();
    };
    const auto pass = [&] {
      for (const std::uint32_t p : {5u, 3u, 1u, 0u}) WEFT_TRY(shard->ready(p));
      return shard->done();
    };
    EXPECT_NE(begin(true, 3).find("micro-step 1, the last one, of a step whose microSteps is 3"),
              std::string::npos);
    EXPECT_EQ(begin(false, 0), "");
    WEFT_TRY(pass());
    EXPECT_EQ(begin(false, 0), "");
    WEFT_TRY(pass());
    EXPECT_NE(begin(true, 0).find("a reproducible step of 3 micro-steps, no power of two"),
              std::string::npos);
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.text();
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
