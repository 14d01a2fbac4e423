// SPDX-License-Identifier: Apache-2.0
// Large buckets go another way than small ones, past the caches and in one pass: to the same bits.
#include <gtest/gtest.h>

#include "shard_training.h"

namespace weft::testing {
namespace {

constexpr std::size_t kParameters = 32, kLength = (48 << 10) + 77;
constexpr int kSteps = 2;

// What training ends with.
struct Result {
  std::vector<std::uint16_t> weights;
  double norm = 0;
  std::uint64_t nonFinite = 0;
  int badParam = -1, badRank = -1;
  bool operator==(const Result&) const = default;
};

class Model {
 public:
  Model(Steps& steps, const Rank& r, const weftShardConfig_t& config) : steps_(steps), rank_(r) {
    std::vector<std::string> names;
    std::vector<weftParam_t> params;
    for (std::size_t p = 0; p < kParameters; ++p) names.push_back(std::to_string(p));
    for (const std::string& name : names) params.push_back(param(name.c_str(), kLength, 0));
    steps.ok(weftShardCreate(&shard_, r.comm, params.data(), params.size(), &config), "create");
    for (std::size_t p = 0; p < kParameters; ++p) fill(buffer(p, false), 0, p, 1);
    steps.ok(weftShardStart(shard_, 0), "start");
  }
  ~Model() { weftShardDestroy(shard_); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // A gradient of rank 1's is NaN if `bad`.
  void step(int number, const weftStepArgs_t& args, bool bad, Result* result) {
    steps_.ok(weftStepBegin(shard_, &args), "begin");
    for (std::size_t p = kParameters; p-- > 0;) {
      fill(buffer(p, true), static_cast<std::uint64_t>(10 * number + rank_.rank + 1), p, 8);
      if (bad && rank_.rank == 1 && p == 20) buffer(p, true)[30000] = 0x7fc0;
      steps_.ok(weftGradReady(shard_, p), "ready");
    }
    steps_.ok(weftGradDone(shard_), "done");
    weftStepStats_t stats{};
    stats.size = sizeof(stats);
    steps_.ok(weftStepWait(shard_, &stats), "wait");
    *result = {{},
               std::isnan(stats.gradientNorm) ? -1 : stats.gradientNorm,
               stats.nonFinite,
               stats.badParam,
               stats.badRank};
  }

  std::uint64_t wireBytes() const {
    weftShardInfo_t info{};
    info.size = sizeof(info);
    steps_.ok(weftShardInfo(shard_, &info), "info");
    return info.wireBytes;
  }
  void collect(Result* result) {
    for (std::size_t p = 0; p < kParameters; ++p)
      result->weights.insert(result->weights.end(), buffer(p, false), buffer(p, false) + kLength);
  }

 private:
  std::uint16_t* buffer(std::size_t p, bool gradient) const {
    void* both[2] = {};
    steps_.ok(weftShardBuffers(shard_, p, &both[0], &both[1]), "buffers");
    return static_cast<std::uint16_t*>(both[gradient ? 1 : 0]);
  }
  static void fill(std::uint16_t* to, std::uint64_t what, std::size_t p, std::size_t every) {
    for (std::size_t i = 0; i < kLength; ++i) {  // some values, repeated, which is quick
      if (i >= 1000 * every) {
        to[i] = to[i - 1000 * every];
        continue;
      }
      const float value = noise(what, p, i);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      to[i] = static_cast<std::uint16_t>(bits >> 16);
    }
  }

  Steps& steps_;
  const Rank& rank_;
  weftShard_t shard_ = nullptr;
};

Result trained(Steps& steps, const Rank& r, weftShardConfig_t config, std::size_t bucketElements,
               const weftStepArgs_t& args, bool bad) {
  config.bucketElements = bucketElements;
  Result result;
  Model model(steps, r, config);
  for (int s = 0; s < kSteps; ++s) model.step(s, args, bad && s + 1 == kSteps, &result);
  model.collect(&result);
  return result;
}

void expectSame(Steps& steps, const Rank& r, const weftShardConfig_t& config,
                const weftStepArgs_t& args, bool bad, const char* what) {
  const Result large = trained(steps, r, config, kParameters * kLength, args, bad);
  steps.expect(trained(steps, r, config, 1, args, bad) == large, what);
  steps.expect((large.nonFinite != 0) == bad && large.badParam == (bad ? 20 : -1) &&
                   large.badRank == (bad ? 1 : -1),
               std::string(what) + ": what is not finite");
}

class LargeBuckets : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, LargeBuckets, ::testing::Values(2, 3));

TEST_P(LargeBuckets, HaveTheBitsOfSmallOnes) {
  const World world{Kind::Processes, GetParam(), "auto", 20000 * kSlowdown};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    Steps steps;
    weftShardConfig_t config = shardConfig(weftBfloat16);
    weftStepArgs_t args = stepArgs();
    args.clipNorm = 1;
    expectSame(steps, r, config, args, false, "clipping");
    expectSame(steps, r, config, args, true, "skipping");
    config.eager = 1;
    config.rounding = weftRoundStochastic;
    args.clipNorm = 0;
    args.skipNonFinite = 0;
    expectSame(steps, r, config, args, false, "eager");
    expectSame(steps, r, config, args, true, "eager, with a NaN");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// Payload that a rank moves in a step, by its transport's own count, for each element.
double movedBytes(Steps& steps, const Rank& r, const Degrees& degrees) {
  weftShardConfig_t config = shardConfig(weftBfloat16, degrees);
  config.bucketElements = 1 << 20;
  Model model(steps, r, config);
  const std::uint64_t before = model.wireBytes();
  Result result;
  model.step(0, stepArgs(), false, &result);
  return static_cast<double>(model.wireBytes() - before) / (kParameters * kLength);
}

// Without shards gradients are all-reduced. Where only the optimizer is sharded after that, as in
// some frameworks, an all-gather follows, as long as that of ZeRO-1, which is half of what it does.
TEST_P(LargeBuckets, MoveTwoThirdsOfAnAllReduceAndAnAllGather) {
  const World world{Kind::Processes, GetParam(), "auto", 20000 * kSlowdown};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    Steps steps;
    const double allReduce = movedBytes(steps, r, {1, 1, 1});
    const double zero1 = movedBytes(steps, r, {1, 1, 0}), allGather = zero1 / 2;
    const double least = 4.0 * (r.ranks - 1) / r.ranks;
    steps.expect(zero1 >= least && zero1 <= 1.03 * least, std::to_string(zero1) + " bytes");
    steps.expect(zero1 <= 1.02 * 2 / 3 * (allReduce + allGather),
                 std::to_string(zero1) + " bytes beside " + std::to_string(allReduce));
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

}  // namespace
}  // namespace weft::testing
