// SPDX-License-Identifier: Apache-2.0
// The sharded optimizer and what may be wrong: every error is typed, says who and what, and leaves
// the shard as it was.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "shard_training.h"

namespace weft::testing {
namespace {

constexpr int kRanks = 4;

bool has(const std::string& part) {
  return std::string(weftGetLastError(nullptr)).find(part) != std::string::npos;
}

// The call must end with `wanted` and an error that has all of `parts`.
void fails(Steps& steps, weftResult_t wanted, weftResult_t result,
           const std::vector<std::string>& parts, const std::string& what) {
  if (!steps.gives(wanted, result, what)) return;
  for (const std::string& part : parts)
    steps.expect(has(part), what + ": no '" + part + "' in: " + weftGetLastError(nullptr));
}

// Does the shard train, from its start, as one to which nothing happened?
void trainsAsEver(Steps& steps, const Rank& r, Shard& shard, const weftShardConfig_t& config) {
  if (!steps.failed().empty()) return;
  weftStepArgs_t args = stepArgs();
  args.skipNonFinite = config.eager == 0 ? 1 : 0;
  for (int s = 0; s < 2; ++s) shard.step(s, args);
  const std::vector<float> after = shard.collect();
  Shard fresh(steps, r, config);
  if (!fresh.start()) return;
  for (int s = 0; s < 2; ++s) fresh.step(s, args);
  steps.expect(after == fresh.collect(), "it trains to other weights afterwards");
}

class ShardErrors : public ::testing::TestWithParam<Kind> {
 protected:
  static World world() { return {GetParam(), kRanks, "auto", 20000 * kSlowdown}; }
};
INSTANTIATE_TEST_SUITE_P(Worlds, ShardErrors, ::testing::Values(Kind::Threads, Kind::Processes),
                         [](const auto& p) { return weft::testing::nameOf(p.param); });

struct BadConfig {
  const char* part;  // of the error
  std::function<void(weftShardConfig_t*)> spoil;
};
const std::vector<BadConfig>& badConfigs() {
  static const std::vector<BadConfig> all = {
      {"degrees {1, 1, 3} on 4 ranks", [](weftShardConfig_t* c) { c->stateDegree = 3; }},
      {"degrees {1, 4, 2} on 4 ranks",
       [](weftShardConfig_t* c) { c->gradDegree = 4, c->stateDegree = 2; }},
      {"paramDegree is -1", [](weftShardConfig_t* c) { c->paramDegree = -1; }},
      {"float32, float16 or bfloat16", [](weftShardConfig_t* c) { c->wireType = weftInt32; }},
      {"cannot travel",
       [](weftShardConfig_t* c) { c->gradType = weftFloat16, c->wireType = weftBfloat16; }},
      {"fp32", [](weftShardConfig_t* c) { c->reproducible = 1, c->wireType = weftBfloat16; }},
      {"betas", [](weftShardConfig_t* c) { c->beta1 = 1; }},
      {"betas", [](weftShardConfig_t* c) { c->momentum = std::nan(""); }},
      {"epsilon", [](weftShardConfig_t* c) { c->epsilon = 0; }},
      {"optimizer is 9", [](weftShardConfig_t* c) { c->optimizer = 9; }},
      {"custom", [](weftShardConfig_t* c) { c->optimizer = weftOptCustom; }},
      {"rounding is 2", [](weftShardConfig_t* c) { c->rounding = 2; }},
      {"LAMB", [](weftShardConfig_t* c) { c->eager = 1, c->optimizer = weftOptLamb; }},
      {"LANS", [](weftShardConfig_t* c) { c->eager = 1, c->optimizer = weftOptLans; }},
      {"eager", [](weftShardConfig_t* c) { c->eager = 1, c->gradDegree = 0; }},
      {"eager steps are not reproducible",
       [](weftShardConfig_t* c) { c->eager = c->reproducible = 1; }},
      {"wire type as long as",
       [](weftShardConfig_t* c) { c->eager = 1, c->wireType = weftBfloat16; }},
      {"fp32 weights; fix: master = 1",
       [](weftShardConfig_t* c) {
         c->optimizer = weftOptCustom;
         c->custom = [](const weftRun_t*, void*) { return 0; };
         c->paramType = weftBfloat16;
         c->master = 0;
       }},
      {"SHARD_CONFIG is not initialized", [](weftShardConfig_t* c) { c->magic = 0; }},
      {"SHARD_CONFIG is not initialized", [](weftShardConfig_t* c) { c->size = 1; }},
  };
  return all;
}

TEST_P(ShardErrors, ConfigurationsThatCannotBe) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    const std::vector<weftParam_t> model = smallModel();
    for (const BadConfig& bad : badConfigs()) {
      weftShardConfig_t config = shardConfig(weftFloat32);
      bad.spoil(&config);
      auto shard = reinterpret_cast<weftShard_t>(&config);
      fails(steps, weftInvalidArgument,
            weftShardCreate(&shard, r.comm, model.data(), model.size(), &config), {bad.part},
            std::string("create, ") + bad.part);
      steps.expect(shard == nullptr, "a shard was made");
    }
    Shard shard(steps, r, shardConfig(weftFloat32));
    if (shard.start()) trainsAsEver(steps, r, shard, shardConfig(weftFloat32));
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// A caller of a later version may pass more than this library knows, if it asks for nothing there.
TEST_P(ShardErrors, StructsOfANewerCaller) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    struct Newer {
      weftShardConfig_t known;
      int more[4];
    } newer{shardConfig(weftFloat32), {}};
    newer.known.size = sizeof(newer);
    const std::vector<weftParam_t> model = smallModel();
    weftShard_t shard = nullptr;
    steps.ok(weftShardCreate(&shard, r.comm, model.data(), model.size(), &newer.known), "newer");
    steps.ok(weftShardDestroy(shard), "destroy");
    newer.more[1] = 1;
    fails(steps, weftInvalidArgument,
          weftShardCreate(&shard, r.comm, model.data(), model.size(), &newer.known),
          {"does not know"}, "a field that is not known");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

struct BadModel {
  const char* what;
  std::vector<std::string> parts;  // of the error
  std::function<void(std::vector<weftParam_t>*)> spoil;
};
using Model = std::vector<weftParam_t>;

TEST_P(ShardErrors, ModelsThatCannotBe) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    const BadModel bads[] = {
        {"no name", {"params[1]"}, [](Model* m) { (*m)[1].name = nullptr; }},
        {"empty name", {"parameter 1"}, [](Model* m) { (*m)[1].name = ""; }},
        {"name twice", {"norm"}, [](Model* m) { (*m)[3].name = "norm"; }},
        {"no elements", {"weight", "no elements"}, [](Model* m) { (*m)[3].elements = 0; }},
        {"too long", {"weight", "too long"}, [](Model* m) { (*m)[3].elements = SIZE_MAX; }},
        {"flags", {"weight", "flags"}, [](Model* m) { (*m)[3].flags = 64; }},
        {"dimensions",
         {"weight", "dimensions is 0"},
         [](Model* m) {
           static const std::size_t shape = 5001;
           (*m)[3].shape = &shape;
         }},
        {"tied ahead", {"norm", "earlier"}, [](Model* m) { (*m)[1].tiedTo = 3; }},
        {"tied to itself", {"norm", "earlier"}, [](Model* m) { (*m)[1].tiedTo = 1; }},
        {"tied below", {"norm", "-2"}, [](Model* m) { (*m)[1].tiedTo = -2; }},
        {"tied length", {"output", "norm"}, [](Model* m) { (*m)[4].tiedTo = 1; }},
        {"tied to a tied one",
         {"extra", "first"},
         [](Model* m) { m->push_back(param("extra", 3000, 0, kOutput)); }},
        {"tied, frozen", {"output", "frozen"}, [](Model* m) { (*m)[4].flags = WEFT_PARAM_FROZEN; }},
        {"all frozen",
         {"trained"},
         [](Model* m) {
           for (weftParam_t& p : *m) p.flags = WEFT_PARAM_FROZEN;
         }},
    };
    const weftShardConfig_t config = shardConfig(weftFloat32);
    weftShard_t shard = nullptr;
    for (const BadModel& bad : bads) {
      Model model = smallModel();
      bad.spoil(&model);
      fails(steps, weftInvalidArgument,
            weftShardCreate(&shard, r.comm, model.data(), model.size(), &config), bad.parts,
            bad.what);
    }
    const Model model = smallModel();
    fails(steps, weftInvalidArgument, weftShardCreate(&shard, r.comm, nullptr, 6, &config),
          {"params"}, "null parameters");
    fails(steps, weftInvalidArgument, weftShardCreate(&shard, r.comm, model.data(), 0, &config),
          {"nparams is 0"}, "no parameters");
    fails(steps, weftInvalidArgument,
          weftShardCreate(nullptr, r.comm, model.data(), model.size(), &config), {"shard"},
          "null shard");
    steps.gives(weftInvalidArgument,
                weftShardCreate(&shard, nullptr, model.data(), model.size(), &config), "no comm");
    Shard good(steps, r, config);
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// Rank 2 has another model than the others: all are told, and the communicator goes on.
TEST_P(ShardErrors, ModelsThatDifferBetweenRanks) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    const BadModel bads[] = {
        {"name", {"rank 2", "parameter number 3"}, [](Model* m) { (*m)[3].name = "other"; }},
        {"length",
         {"rank 2", "parameter number 0"},
         [](Model* m) { (*m)[0].elements = (*m)[4].elements = 3001; }},
        {"order", {"rank 2", "parameter number 1"}, [](Model* m) { std::swap((*m)[1], (*m)[5]); }},
        {"flags", {"rank 2", "parameter number 5"}, [](Model* m) { (*m)[5].flags = 0; }},
        {"tie", {"rank 2", "parameter number 4"}, [](Model* m) { (*m)[4].tiedTo = -1; }},
        {"count", {"rank 2", "5 parameters", "6"}, [](Model* m) { m->pop_back(); }},
        {"one that cannot be", {}, [](Model* m) { (*m)[3].elements = 0; }},
    };
    for (const BadModel& bad : bads) {
      Model model = smallModel();
      if (r.rank == 2) bad.spoil(&model);
      const weftShardConfig_t config = shardConfig(weftFloat32);
      weftShard_t shard = nullptr;
      fails(steps, weftInvalidArgument,
            weftShardCreate(&shard, r.comm, model.data(), model.size(), &config), bad.parts,
            bad.what);
    }
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");
    Shard good(steps, r, shardConfig(weftFloat32));
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(ShardErrors, ConfigurationsThatDifferBetweenRanks) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    const std::function<void(weftShardConfig_t*)> others[] = {
        [](weftShardConfig_t* c) { c->stateDegree = 1; },
        [](weftShardConfig_t* c) { c->paramDegree = c->gradDegree = c->stateDegree = 2; },
        [](weftShardConfig_t* c) { c->stateDegree = 3; },  // which cannot be
        [](weftShardConfig_t* c) { c->wireType = weftBfloat16; },
        [](weftShardConfig_t* c) { c->beta2 = 0.99; },
        [](weftShardConfig_t* c) { c->seed = 1; },
        [](weftShardConfig_t* c) { c->bucketElements = 100; },
        [](weftShardConfig_t* c) { c->eager = 1; },
    };
    const Model model = smallModel();
    for (std::size_t i = 0; i < std::size(others); ++i) {
      weftShardConfig_t config = shardConfig(weftFloat32);
      if (r.rank == 2) others[i](&config);
      weftShard_t shard = nullptr;
      const weftResult_t made =
          weftShardCreate(&shard, r.comm, model.data(), model.size(), &config);
      const char* const part = r.rank == 2 && i == 2 ? "degrees {1, 1, 3}" : "rank 2";
      fails(steps, weftInvalidArgument, made, {part}, "configuration " + std::to_string(i));
    }
    Shard good(steps, r, shardConfig(weftFloat32));
    if (good.start()) trainsAsEver(steps, r, good, shardConfig(weftFloat32));
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(ShardErrors, CallsInTheWrongOrder) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    const weftShardConfig_t config = shardConfig(weftFloat32);
    Shard shard(steps, r, config);
    const weftStepArgs_t args = stepArgs();
    const weftResult_t wrong = weftInvalidUsage;
    fails(steps, wrong, weftStepBegin(shard, &args), {"without weights", "weftShardStart"},
          "begin before start");
    if (!shard.start()) return steps.failed();
    fails(steps, wrong, weftGradDone(shard), {"weftGradDone", "rank "}, "done without begin");
    fails(steps, wrong, weftGradReady(shard, kBias), {"weftGradReady"}, "ready without begin");
    fails(steps, wrong, weftStepWait(shard, nullptr), {"weftStepWait"}, "wait without step");
    steps.ok(weftStepBegin(shard, &args), "begin");
    fails(steps, wrong, weftStepBegin(shard, &args), {"twice"}, "begin twice");
    fails(steps, wrong, weftStepWait(shard, nullptr), {"weftStepWait"}, "wait in backward");
    fails(steps, wrong, weftShardStart(shard, 0), {"start"}, "start in a step");
    fails(steps, wrong, weftGradReady(shard, kFrozen), {"'frozen'"}, "ready of a frozen one");
    fails(steps, weftInvalidArgument, weftGradReady(shard, 6), {"6"}, "ready of none");
    shard.addGradient(r.rank, kBias);
    steps.ok(weftGradReady(shard, kBias), "ready");
    fails(steps, wrong, weftGradReady(shard, kBias), {"'bias'", "twice"}, "ready twice");
    for (const std::size_t p : {kWeight, kNorm, kEmbedding}) {
      shard.addGradient(r.rank, p);
      if (p != kEmbedding) steps.ok(weftGradReady(shard, p), "ready");
    }
    steps.ok(weftGradReady(shard, kOutput), "ready of the tied one");
    fails(steps, wrong, weftGradReady(shard, kEmbedding), {"'embedding'", "twice"},
          "ready of what is tied to a ready one");
    steps.ok(weftGradDone(shard), "done");
    fails(steps, wrong, weftGradDone(shard), {"weftGradDone"}, "done twice");
    fails(steps, wrong, weftStepBegin(shard, &args), {"weftStepWait"}, "begin before wait");
    steps.ok(weftStepWait(shard, nullptr), "wait");
    const std::vector<float> weights = shard.collect();
    Shard fresh(steps, r, config);
    if (!fresh.start()) return steps.failed();
    fresh.step(0, args);
    steps.expect(fresh.collect() == weights, "the step was another one");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(ShardErrors, NoneIsMadeInsideOfAGroup) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    const weftShardConfig_t config = shardConfig(weftFloat32);
    const Model model = smallModel();
    weftShard_t shard = nullptr;
    steps.ok(weftGroupStart(), "start a group");
    fails(steps, weftInvalidUsage,
          weftShardCreate(&shard, r.comm, model.data(), model.size(), &config),
          {"inside of a group; fix: call it after weftGroupEnd"}, "create");
    steps.ok(weftGroupEnd(), "end the group");
    Shard good(steps, r, config);
    if (good.start()) trainsAsEver(steps, r, good, config);
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(ShardErrors, GradientThatIsMissingInAMicroStep) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    Shard shard(steps, r, shardConfig(weftFloat32));
    if (!shard.start()) return steps.failed();
    weftStepArgs_t args = stepArgs();
    args.boundary = 0;
    steps.ok(weftStepBegin(shard, &args), "begin");
    shard.backward(r.rank, r.rank == 2 ? kWeight : ~std::size_t{0});
    if (r.rank == 2)
      fails(steps, weftInvalidUsage, weftGradDone(shard),
            {"'weight' was never ready in this micro-step: its gradient counts as it is"}, "done");
    else
      steps.ok(weftGradDone(shard), "done");
    args.boundary = 1;
    shard.step(1, args);
    steps.expect(areSame(steps, r, shard.collect()), "ranks have other weights");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// What others have stepped already cannot be called off.
TEST_P(ShardErrors, GradientThatIsMissingInAnEagerStepIsTheEnd) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    weftShardConfig_t config = shardConfig(weftFloat32);
    config.eager = 1;
    weftStepArgs_t args = stepArgs();
    args.skipNonFinite = 0;
    Shard shard(steps, r, config);
    if (!shard.start()) return steps.failed();
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "all have started");
    steps.ok(weftStepBegin(shard, &args), "begin");
    if (r.rank == 2) {
      shard.addGradient(0, kBias);
      fails(steps, weftInvalidUsage, weftGradDone(shard),
            {"was never ready, and the eager step of others has begun: aborted"}, "done");
      return steps.failed();
    }
    shard.backward(r.rank);
    steps.ok(weftGradDone(shard), "done");
    fails(steps, weftAborted, weftStepWait(shard, nullptr), {"was aborted by rank 2"}, "wait");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(ShardErrors, ArgumentsOfSteps) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    const weftShardConfig_t config = shardConfig(weftFloat32);
    Shard shard(steps, r, config);
    if (!shard.start()) return steps.failed();
    const auto refused = [&](const char* part, const auto& spoil) {
      weftStepArgs_t args = stepArgs();
      spoil(&args);
      fails(steps, weftInvalidArgument, weftStepBegin(shard, &args), {part}, part);
    };
    refused("learningRate", [](weftStepArgs_t* a) { a->learningRate = -1; });
    refused("learningRate", [](weftStepArgs_t* a) { a->learningRate = std::nan(""); });
    refused("clipNorm", [](weftStepArgs_t* a) { a->clipNorm = -1; });
    refused("lossScale", [](weftStepArgs_t* a) { a->lossScale = 0; });
    refused("divisor", [](weftStepArgs_t* a) { a->divisor = -3; });
    refused("STEP_ARGS is not initialized", [](weftStepArgs_t* a) { a->magic = 1; });
    const weftResult_t wrong = weftInvalidArgument;
    fails(steps, wrong, weftShardStart(shard, 4), {"root 4"}, "root 4");
    fails(steps, wrong, weftShardStart(shard, -2), {"root -2"}, "root -2");
    fails(steps, wrong, weftParamWait(shard, 99), {"bucket 99"}, "bucket 99");
    fails(steps, wrong, weftParamWait(shard, -1), {"bucket -1"}, "bucket -1");
    fails(steps, wrong, weftParamPrefetch(shard, 99), {"bucket 99"}, "prefetch bucket 99");
    fails(steps, wrong, weftParamRelease(shard, -1), {"bucket -1"}, "release bucket -1");
    void* memory = nullptr;
    fails(steps, wrong, weftShardBuffers(shard, 6, &memory, nullptr), {"param is 6"}, "param 6");
    fails(steps, wrong, weftShardBucket(shard, kBias, nullptr), {"bucket"}, "null bucket");
    fails(steps, wrong, weftShardSetWeights(shard, 6, nullptr), {"param is 6"}, "weights of 6");
    fails(steps, wrong, weftShardSetWeights(shard, 0, nullptr), {"weights"}, "null weights");
    weftShardInfo_t info{};
    fails(steps, wrong, weftShardInfo(shard, &info), {"info->size"}, "size of info");
    fails(steps, wrong, weftShardInfo(shard, nullptr), {"info"}, "null info");
    trainsAsEver(steps, r, shard, config);
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST(ShardHandles, ThatAreNone) {
  int stranger = 0;
  weftComm_t comm = nullptr;
  ASSERT_EQ(weftCommInitAll(&comm, 1, nullptr), weftSuccess);
  weftShard_t dead = nullptr;
  const Model model = smallModel();
  ASSERT_EQ(weftShardCreate(&dead, comm, model.data(), model.size(), nullptr), weftSuccess);
  EXPECT_EQ(weftShardDestroy(dead), weftSuccess);
  EXPECT_EQ(weftShardDestroy(nullptr), weftSuccess);
  EXPECT_EQ(weftShardDestroy(dead), weftInvalidArgument);
  for (const weftShard_t none : {weftShard_t{}, dead, reinterpret_cast<weftShard_t>(&stranger),
                                 reinterpret_cast<weftShard_t>(comm)}) {
    const weftStepArgs_t args = stepArgs();
    weftShardInfo_t info{};
    info.size = sizeof(info);
    int bucket = 0;
    const weftResult_t results[] = {weftShardAbort(none),
                                    weftShardBuffers(none, 0, nullptr, nullptr),
                                    weftShardBucket(none, 0, &bucket),
                                    weftShardInfo(none, &info),
                                    weftShardStart(none, 0),
                                    weftShardSetWeights(none, 0, nullptr),
                                    weftStepBegin(none, &args),
                                    weftGradReady(none, 0),
                                    weftGradDone(none),
                                    weftParamWait(none, 0),
                                    weftParamPrefetch(none, 0),
                                    weftParamRelease(none, 0),
                                    weftStepWait(none, nullptr)};
    for (const weftResult_t result : results) EXPECT_EQ(result, weftInvalidArgument);
    EXPECT_TRUE(has("shard is null, destroyed or no shard"));
  }
  EXPECT_EQ(weftCommDestroy(comm), weftSuccess);
}

// Rank 1 forgets a parameter.
TEST(ShardAlone, IsAborted) {
  weftComm_t comm = nullptr;
  ASSERT_EQ(weftCommInitAll(&comm, 1, nullptr), weftSuccess);
  weftShard_t shard = nullptr;
  const Model model = smallModel();
  ASSERT_EQ(weftShardCreate(&shard, comm, model.data(), model.size(), nullptr), weftSuccess);
  EXPECT_EQ(weftShardStart(shard, 0), weftSuccess);
  EXPECT_EQ(weftShardAbort(shard), weftSuccess);
  const weftStepArgs_t args = stepArgs();
  EXPECT_EQ(weftStepBegin(shard, &args), weftAborted);
  EXPECT_TRUE(has("was aborted; fix: destroy it"));
  EXPECT_EQ(weftParamWait(shard, 0), weftAborted);
  EXPECT_EQ(weftShardDestroy(shard), weftSuccess);
  EXPECT_EQ(weftCommDestroy(comm), weftSuccess);
}

TEST_P(ShardErrors, ParameterThatWasNeverReady) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    for (const Degrees& d : {Degrees{1, 1, 0}, Degrees{0, 0, 0}, Degrees{1, 2, 2}}) {
      const weftShardConfig_t config = shardConfig(weftFloat32, d);
      Shard shard(steps, r, config);
      if (!shard.start()) return steps.failed();
      const std::vector<float> before = shard.collect();
      const weftStepArgs_t args = stepArgs();
      steps.ok(weftStepBegin(shard, &args), "begin");
      shard.backward(17, r.rank == 1 ? kNorm : ~std::size_t{0});
      steps.ok(weftGradDone(shard), "done");
      weftStepStats_t stats{};
      stats.size = sizeof(stats);
      fails(steps, weftInvalidUsage, weftStepWait(shard, &stats), {"'norm'", "rank 1"}, "wait");
      steps.expect(stats.skipped == 1, "it was not skipped");
      steps.expect(shard.collect() == before, "it has stepped");
      steps.expect(shard.info().steps == 0, "the step was counted");
      trainsAsEver(steps, r, shard, config);
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(ShardErrors, StepsWithOtherArgumentsOnOneRank) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    const weftShardConfig_t config = shardConfig(weftFloat32);
    Shard shard(steps, r, config);
    if (!shard.start()) return steps.failed();
    const std::vector<float> before = shard.collect();
    const weftStepArgs_t args = stepArgs(r.rank == 3 ? 0.02 : 0.01);
    steps.ok(weftStepBegin(shard, &args), "begin");
    shard.backward(17);
    steps.ok(weftGradDone(shard), "done");
    fails(steps, weftInvalidUsage, weftStepWait(shard, nullptr), {"rank 3", "weftStepArgs"},
          "wait");
    steps.expect(shard.collect() == before, "it has stepped");
    trainsAsEver(steps, r, shard, config);
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// One step in which rank `bad` brings a value for element 1234 of "weight", in micro-step 0.
weftStepStats_t poisonedStep(Steps& steps, const Rank& r, Shard& shard, weftStepArgs_t args,
                             int micros, int bad, double value) {
  for (int m = 0; m < micros; ++m) {
    args.boundary = m + 1 == micros;
    steps.ok(weftStepBegin(shard, &args), "begin");
    if (m == 0 && r.rank == bad)
      store(shard.gradient(kWeight) + 1234 * sizeof(float), weftFloat32, value);
    shard.backward(r.rank);
    steps.ok(weftGradDone(shard), "done");
  }
  weftStepStats_t stats{};
  stats.size = sizeof(stats);
  steps.ok(weftStepWait(shard, &stats), "wait");
  return stats;
}

TEST_P(ShardErrors, GradientThatIsNotFiniteIsSkippedAndNamed) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    const double values[] = {std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()};
    for (const Degrees& d : {Degrees{1, 1, 1}, Degrees{1, 1, 0}, Degrees{1, 0, 0}, Degrees{0, 0, 0},
                             Degrees{2, 2, 2}, Degrees{2, 4, 4}}) {
      const weftShardConfig_t config = shardConfig(weftFloat32, d);
      Shard shard(steps, r, config);
      if (!shard.start()) return steps.failed();
      const std::vector<float> before = shard.collect();
      const std::string where =
          "degrees " + std::to_string(d.param) + std::to_string(d.grad) + std::to_string(d.state);
      for (int bad = 0; bad < r.ranks; ++bad) {
        const weftStepStats_t stats =
            poisonedStep(steps, r, shard, stepArgs(), 1 + bad % 2, bad, values[bad / 2]);
        steps.expect(stats.skipped == 1 && stats.nonFinite == 1, where + ": not skipped");
        steps.expect(stats.badParam == kWeight,
                     where + ": parameter " + std::to_string(stats.badParam));
        steps.expect(stats.badRank == bad, where + ": rank " + std::to_string(stats.badRank) +
                                               " instead of " + std::to_string(bad));
      }
      steps.expect(shard.collect() == before, where + ": it has stepped");
      trainsAsEver(steps, r, shard, config);
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(ShardErrors, GradientThatIsNotFiniteStepsIfWanted) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    for (const bool eager : {false, true}) {
      weftShardConfig_t config = shardConfig(weftFloat32);
      config.eager = eager ? 1 : 0;
      Shard shard(steps, r, config);
      if (!shard.start()) return steps.failed();
      weftStepArgs_t args = stepArgs();
      args.skipNonFinite = 0;
      const weftStepStats_t stats = poisonedStep(steps, r, shard, args, 1, 2, NAN);
      steps.expect(stats.skipped == 0 && stats.nonFinite == 1, "skipped");
      steps.expect(stats.badParam == kWeight && stats.badRank == 2, "blames another");
      const std::vector<float> after = shard.collect();
      const auto bad = std::count_if(after.begin(), after.end(), [](float x) { return x != x; });
      steps.expect(bad == 1 && shard.info().steps == 1, "did not step");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(ShardErrors, EagerNeitherClipsNorSkips) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    weftShardConfig_t config = shardConfig(weftFloat32);
    config.eager = 1;
    Shard shard(steps, r, config);
    if (!shard.start()) return steps.failed();
    weftStepArgs_t args = stepArgs();
    fails(steps, weftInvalidArgument, weftStepBegin(shard, &args), {"skipNonFinite = 0"}, "skip");
    args.skipNonFinite = 0;
    args.clipNorm = 1;
    fails(steps, weftInvalidArgument, weftStepBegin(shard, &args), {"clipNorm = 0"}, "clip");
    trainsAsEver(steps, r, shard, config);
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// Steps nothing; fails for one parameter on one rank, once.
struct Failing {
  bool here = false;
  int left = 1;
};
int failingStep(const weftRun_t* run, void* user) {
  auto* const failing = static_cast<Failing*>(user);
  for (std::size_t i = 0; i < run->elements; ++i) run->weights[i] += 1;
  return failing->here && run->param == kWeight && failing->left-- > 0 ? 7 : 0;
}

TEST_P(ShardErrors, CustomOptimizerThatFails) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    for (const bool eager : {false, true}) {
      Failing failing{r.rank == 2};
      weftShardConfig_t config = shardConfig(weftBfloat16);
      config.optimizer = weftOptCustom;
      config.custom = failingStep;
      config.user = &failing;
      config.eager = eager ? 1 : 0;
      weftStepArgs_t args = stepArgs();
      args.skipNonFinite = 0;
      Shard shard(steps, r, config);
      if (!shard.start()) return steps.failed();
      steps.ok(weftStepBegin(shard, &args), "begin");
      shard.backward(r.rank);
      steps.ok(weftGradDone(shard), "done");
      const weftResult_t wanted = r.rank == 2 ? weftSystemError : weftRemoteError;
      const char* const says = r.rank == 2 ? "returned 7" : "rank 2";
      fails(steps, wanted, weftStepWait(shard, nullptr), {says, "'weight'"}, "wait");
      steps.expect(areSame(steps, r, shard.collect()), "ranks have other weights");
      shard.step(1, args);
      steps.expect(areSame(steps, r, shard.collect()), "ranks have other weights later");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(ShardErrors, FoldersThatCannotBe) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    Shard shard(steps, r, shardConfig(weftFloat32));
    if (!shard.start()) return steps.failed();
    fails(steps, weftInvalidArgument, weftShardSave(shard, "", nullptr, 0), {"need a folder"},
          "save");
    fails(steps, weftInvalidArgument, weftShardLoad(shard, "/nowhere", nullptr, 0),
          {"no checkpoint in '/nowhere'"}, "load");
    trainsAsEver(steps, r, shard, shardConfig(weftFloat32));
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST_P(ShardErrors, ReshardingToWhatIsAnother) {
  const std::string failed = failures(world(), [](const Rank& r) -> std::string {
    Steps steps;
    weftShardConfig_t momentum = shardConfig(weftFloat32);
    momentum.optimizer = weftOptSgd;
    Shard from(steps, r, shardConfig(weftFloat32)), other(steps, r, momentum);
    const std::vector<weftParam_t> more = {param("embedding", 3000, 0)};
    weftShard_t smaller = nullptr;
    const weftShardConfig_t config = shardConfig(weftFloat32);
    steps.ok(weftShardCreate(&smaller, r.comm, more.data(), more.size(), &config), "smaller");
    if (!from.start() || !other.start()) return steps.failed();
    steps.ok(weftShardStart(smaller, 0), "start");
    fails(steps, weftInvalidArgument, weftShardReshard(from, other), {"another optimizer"}, "one");
    fails(steps, weftInvalidArgument, weftShardReshard(from, smaller),
          {"the new shard has 1 parameters, the old one 6"}, "two");
    steps.ok(weftShardDestroy(smaller), "destroy");
    trainsAsEver(steps, r, from, shardConfig(weftFloat32));
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

}  // namespace
}  // namespace weft::testing
