// SPDX-License-Identifier: Apache-2.0
// Models in parts: two ranks share a part, and two parts step as one model.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>

#include "shard_training.h"

namespace weft::testing {
namespace {

constexpr std::size_t kNorms = 7, kHalf = 5001;
constexpr int kParts = 2;

// A communicator of some ranks of another one.
class Split {
 public:
  Split(Steps& steps, const Rank& r, int color, int key) {
    steps.ok(weftCommSplit(r.comm, color, key, &comm_, nullptr), "split");
  }
  ~Split() { weftCommDestroy(comm_); }
  Split(const Split&) = delete;
  Split& operator=(const Split&) = delete;
  operator weftComm_t() const { return comm_; }

 private:
  weftComm_t comm_ = nullptr;
};

// Neighbours have parts 0 and 1; even ranks share part 0, odd ones part 1.
struct Groups {
  Groups(Steps& steps, const Rank& r)
      : part(r.rank % kParts),
        sharer(r.rank / kParts),
        sharers(steps, r, part, r.rank),
        parts(steps, r, sharer, r.rank) {}
  int part, sharer;
  Split sharers, parts;
};

// Norms that both parts have, and a weight that is halved, or whole.
class Half {
 public:
  Half(Steps& steps, const Groups& groups, weftShardConfig_t config, bool whole)
      : steps_(steps), groups_(groups), whole_(whole) {
    if (!whole) config.parts = groups.parts;
    const unsigned copy = !whole && groups.part > 0 ? WEFT_PARAM_COPY : 0;
    const weftParam_t model[] = {
        param("norm", kNorms, WEFT_PARAM_NO_DECAY | copy),
        param("weight", whole ? 2 * kHalf : kHalf, whole ? 0 : WEFT_PARAM_SPLIT)};
    steps.ok(weftShardCreate(&shard_, groups.sharers, model, 2, &config), "create");
  }
  ~Half() { weftShardDestroy(shard_); }
  Half(const Half&) = delete;
  Half& operator=(const Half&) = delete;
  operator weftShard_t() const { return shard_; }

  void start() {
    for (std::size_t p = 0; p < 2; ++p)
      visit(p, 0, [&](float& x, std::size_t i) { x = initialAt(p, i); });
    steps_.ok(weftShardStart(shard_, 0), "start");
  }
  // All of a step but its end; without the gradient of `without`.
  void passes(int number, const weftStepArgs_t& args, std::size_t without = 2) {
    steps_.ok(weftStepBegin(shard_, &args), "begin");
    const int micro = 2 * number + groups_.sharer;
    for (std::size_t p = 2; p-- > 0;) {
      visit(p, 1, [&](float& x, std::size_t i) { x += spoilt.value_or(gradientAt(micro, p, i)); });
      if (p != without) steps_.ok(weftGradReady(shard_, p), "ready");
    }
    steps_.ok(weftGradDone(shard_), "done");
  }
  weftStepStats_t end(weftResult_t wanted = weftSuccess) {
    weftStepStats_t stats{};
    stats.size = sizeof(stats);
    steps_.gives(wanted, weftStepWait(shard_, &stats), "wait");
    return stats;
  }
  weftStepStats_t step(int number, const weftStepArgs_t& args) {
    passes(number, args);
    return end();
  }
  // The norms, and this part's half of the weight.
  std::vector<float> collect() {
    weftShardInfo_t info{};
    info.size = sizeof(info);
    steps_.ok(weftShardInfo(shard_, &info), "info");
    for (int b = 0; b < info.buckets; ++b) steps_.ok(weftParamWait(shard_, b), "wait for bucket");
    std::vector<float> all;
    visit(0, 0, [&](float& x, std::size_t) { all.push_back(x); });
    visit(1, 0, [&](float& x, std::size_t i) {
      if (i / kHalf == static_cast<std::size_t>(groups_.part)) all.push_back(x);
    });
    return all;
  }

  std::optional<float> spoilt;  // in place of gradients

 private:
  // body(value, index in the whole parameter)
  template <class Body>
  void visit(std::size_t p, int which, const Body& body) {
    void* both[2] = {};
    steps_.ok(weftShardBuffers(shard_, p, &both[0], &both[1]), "buffers");
    const std::size_t n = p == 0 ? kNorms : whole_ ? 2 * kHalf : kHalf;
    const std::size_t first = p == 1 && !whole_ && groups_.part == 1 ? kHalf : 0;
    for (std::size_t i = 0; i < n; ++i) body(static_cast<float*>(both[which])[i], first + i);
  }

  Steps& steps_;
  const Groups& groups_;
  const bool whole_;
  weftShard_t shard_ = nullptr;
};

class Parts : public ::testing::TestWithParam<Kind> {
 protected:
  static World world() { return {GetParam(), 4, "auto", 20000 * kSlowdown}; }
  void expectNone(const Body& body) { EXPECT_EQ(failures(world(), body), ""); }
};
INSTANTIATE_TEST_SUITE_P(Worlds, Parts, ::testing::Values(Kind::Threads, Kind::Processes),
                         [](const auto& p) { return weft::testing::nameOf(p.param); });

void says(Steps& steps, const std::string& part) {
  const std::string error = weftGetLastError(nullptr);
  steps.expect(error.find(part) != std::string::npos, "no '" + part + "' in: " + error);
}

TEST_P(Parts, StepAsTheWholeModel) {
  expectNone([](const Rank& r) -> std::string {
    Steps steps;
    const Groups groups(steps, r);
    weftStepArgs_t args = stepArgs();
    args.clipNorm = 0.5;
    args.weightDecay = 0.1;
    // The norms of LAMB and LANS are of both halves.
    for (const auto& [d, optimizer] :
         {std::pair{Degrees{1, 1, 1}, weftOptAdamW}, std::pair{Degrees{1, 1, 0}, weftOptAdamW},
          std::pair{Degrees{0, 0, 0}, weftOptAdamW}, std::pair{Degrees{1, 1, 1}, weftOptLamb},
          std::pair{Degrees{0, 0, 0}, weftOptLamb}, std::pair{Degrees{1, 1, 0}, weftOptLans}}) {
      weftShardConfig_t config = shardConfig(weftFloat32, d);
      config.optimizer = optimizer;
      Half whole(steps, groups, config, true), half(steps, groups, config, false);
      whole.start();
      half.start();
      for (int s = 0; s < 3; ++s) {
        const weftStepStats_t wanted = whole.step(s, args), got = half.step(s, args);
        steps.expect(wanted.clip < 1, "nothing was clipped");
        steps.expect(std::abs(got.gradientNorm / wanted.gradientNorm - 1) < 1e-12, "norm");
        steps.expect(std::abs(got.clip / wanted.clip - 1) < 1e-12, "clip");
        steps.expect(got.badPart == -1, "nothing was bad");
      }
      steps.expect(farthest(half.collect(), whole.collect()) < 1e-7, "other weights");
    }
    return steps.failed();
  });
}

// The fused step of a bucket finds the norm on another way; it cannot clip.
TEST_P(Parts, EagerStepsHaveTheNormOfTheWholeModel) {
  expectNone([](const Rank& r) -> std::string {
    Steps steps;
    const Groups groups(steps, r);
    weftStepArgs_t args = stepArgs();
    args.skipNonFinite = 0;
    weftShardConfig_t config = shardConfig(weftFloat32);
    Half whole(steps, groups, config, true);
    config.eager = 1;
    Half half(steps, groups, config, false);
    whole.start();
    half.start();
    const double wanted = whole.step(0, args).gradientNorm, got = half.step(0, args).gradientNorm;
    steps.expect(std::abs(got / wanted - 1) < 1e-12, "norm");
    return steps.failed();
  });
}

TEST_P(Parts, WhatIsNotFiniteInOneSkipsTheStepOfAll) {
  expectNone([](const Rank& r) -> std::string {
    Steps steps;
    const Groups groups(steps, r);
    Half half(steps, groups, shardConfig(weftFloat32), false);
    half.start();
    const std::vector<float> before = half.collect();
    if (groups.part == 1 && groups.sharer == 1)
      half.spoilt = std::numeric_limits<float>::infinity();
    const weftStepStats_t stats = half.step(0, stepArgs());
    steps.expect(stats.skipped == 1 && stats.nonFinite == kNorms + kHalf, "not skipped");
    steps.expect(stats.badPart == 1 && stats.badParam == 0 && stats.badRank == 1, "who it was");
    steps.expect(half.collect() == before, "stepped after all");
    half.spoilt.reset();
    steps.expect(half.step(1, stepArgs()).skipped == 0, "the next is one like others");
    return steps.failed();
  });
}

TEST_P(Parts, WhatCallsOffTheStepOfOneCallsItOffEverywhere) {
  expectNone([](const Rank& r) -> std::string {
    Steps steps;
    const Groups groups(steps, r);
    Half half(steps, groups, shardConfig(weftFloat32), false);
    half.start();
    half.passes(0, stepArgs(groups.part == 1 ? 0.5 : 0.25));
    half.end(weftInvalidUsage);
    says(steps, "part 1 of the model has other weftStepArgs than part 0");
    half.passes(1, stepArgs(), groups.part == 0 && groups.sharer == 1 ? 0 : 2);
    half.end(weftInvalidUsage);
    says(steps, groups.part == 0 ? "parameter 'norm' was never ready on rank 1"
                                 : "the ranks with part 0 of the model have called the step off");
    half.step(2, stepArgs());
    return steps.failed();
  });
}

TEST_P(Parts, AFailedOptimizerOfOneIsToldToAll) {
  expectNone([](const Rank& r) -> std::string {
    Steps steps;
    const Groups groups(steps, r);
    weftShardConfig_t config = shardConfig(weftFloat32);
    config.optimizer = weftOptCustom;
    int result = groups.part;
    config.user = &result;
    config.custom = [](const weftRun_t*, void* user) { return *static_cast<int*>(user); };
    Half half(steps, groups, config, false);
    half.start();
    half.passes(0, stepArgs());
    half.end(groups.part == 1 ? weftSystemError : weftRemoteError);
    says(steps, groups.part == 1 ? "the custom optimizer returned 1"
                                 : "the custom optimizer failed in part 1 of the model");
    return steps.failed();
  });
}

TEST_P(Parts, ThatDoNotFitAreRefusedEverywhere) {
  expectNone([](const Rank& r) -> std::string {
    Steps steps;
    const Groups groups(steps, r);
    const weftParam_t model[] = {param("weight", kHalf, 0)};
    const auto refused = [&](weftComm_t sharers, weftShardConfig_t config, const char* sentence) {
      weftShard_t shard = nullptr;
      if (steps.gives(weftInvalidArgument, weftShardCreate(&shard, sharers, model, 1, &config),
                      sentence))
        says(steps, sentence);
    };
    weftShardConfig_t config = shardConfig(weftFloat32);
    config.parts = groups.parts;
    config.beta1 = groups.part == 1 ? 0.5 : 0.9;
    refused(groups.sharers, config, "part 1 of the model has another configuration");
    config.beta1 = 0.9;
    const Split mixed(steps, r, groups.part == groups.sharer, r.rank);
    config.parts = mixed;
    refused(groups.sharers, config, "rank 1 has part 1 of 2 of the model, rank 0 part 0 of 2");
    const Split crossed(steps, r, groups.part == groups.sharer, groups.part);
    config.parts = crossed;
    refused(groups.sharers, config, "part 1 of the model is on rank ");
    config.parts = nullptr;
    for (const auto& [flag, name] : {std::pair{WEFT_PARAM_COPY, std::string("COPY")},
                                     std::pair{WEFT_PARAM_SPLIT, std::string("SPLIT")}}) {
      const weftParam_t alone = param("weight", 1, flag);
      weftShard_t shard = nullptr;
      steps.gives(weftInvalidArgument, weftShardCreate(&shard, r.comm, &alone, 1, &config), "part");
      says(steps, "'weight' is WEFT_PARAM_" + name +
                      ", of a model that is not in parts; fix: config.parts");
    }
    return steps.failed();
  });
}

}  // namespace
}  // namespace weft::testing
