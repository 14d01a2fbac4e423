// SPDX-License-Identifier: Apache-2.0
// From one sharded optimizer to another in memory.
#include "shard/reshard.h"

#include "checkpoints.h"

namespace weft::test {
using namespace shard;
namespace {

struct Move {
  const char* name;
  int from, to;  // ranks; the first ones are those of both
  Degrees before, after;
};

ShardConfig configOf(const Degrees& degrees, std::uint64_t bucketElements) {
  ShardConfig config = fp32Config(degrees);
  config.reproducible = true;
  config.bucketElements = bucketElements;
  return config;
}

Training partOf(int ranks, const ShardConfig& config, int first, int steps) {
  Training run;
  run.ranks = ranks;
  run.config = config;
  run.first = first;
  run.steps = steps;
  run.microBatches = 8;
  return run;
}

class Resharding : public testing::TestWithParam<Move> {};

TEST_P(Resharding, GoesOnToTheBit) {
  const Move& move = GetParam();
  comm::CommConfig config;
  config.timeoutMs = 60000;
  std::vector<std::shared_ptr<comm::Communicator>> before, after;
  ASSERT_TRUE(comm::createAll(move.from, config, &before).ok());
  ASSERT_TRUE(comm::createAll(move.to, config, &after).ok());
  const auto all = static_cast<std::size_t>(std::max(move.from, move.to));
  std::vector<Result> results(all);
  const Status status = onThreads(all, [&](std::size_t r) -> Status {
    std::unique_ptr<ShardedOptimizer> from, to;
    const auto rank = static_cast<std::uint32_t>(r);
    if (r < before.size()) {
      const Training run = partOf(move.from, configOf(move.before, 4000), 0, 2);
      WEFT_TRY(ShardedOptimizer::create(*before[r], run.config, smallModel(), &from));
      WEFT_TRY(Trained(*from, run).train(rank));
    }
    if (r < after.size())
      WEFT_TRY(ShardedOptimizer::create(*after[r], configOf(move.after, 100), smallModel(), &to));
    if (to == nullptr) return reshard(from.get(), nullptr);
    Training run = partOf(move.to, configOf(move.after, 100), 2, 4);
    run.resume = [&](ShardedOptimizer&) { return reshard(from.get(), to.get()); };
    Trained trained(*to, run);
    WEFT_TRY(trained.train(rank));
    results[r] = trained.result;
    return {};
  });
  ASSERT_TRUE(status.ok()) << status.text();
  const Result whole = trainAll(partOf(1, configOf({1, 1, 1}, 4000), 0, 4));
  for (std::size_t r = 0; r < after.size(); ++r)
    EXPECT_TRUE(results[r].weights == whole.weights) << r;
}

std::string nameOf(const testing::TestParamInfo<Move>& tested) { return tested.param.name; }
INSTANTIATE_TEST_SUITE_P(All, Resharding,
                         testing::Values(Move{"zero2tozero3", 4, 4, {1, 4, 4}, {4, 4, 4}},
                                         Move{"shrinks", 8, 2, {2, 4, 8}, {1, 1, 2}},
                                         Move{"grows", 2, 8, {1, 2, 2}, {2, 2, 4}},
                                         Move{"growsfromone", 1, 4, {1, 1, 1}, {1, 1, 4}},
                                         Move{"shrinkstoone", 4, 1, {1, 1, 4}, {1, 1, 1}}),
                         nameOf);

TEST(Reshards, OtherModelsAndOptimizersAreRefusedByAll) {
  std::vector<std::shared_ptr<comm::Communicator>> before, after;
  ASSERT_TRUE(comm::createAll(2, {}, &before).ok());
  ASSERT_TRUE(comm::createAll(3, {}, &after).ok());
  std::vector<ParameterSpec> other = smallModel();
  other[3].elements = 5002;
  const Status status = onThreads(3, [&](std::size_t r) -> Status {
    std::unique_ptr<ShardedOptimizer> from, to;
    if (r < 2)
      WEFT_TRY(ShardedOptimizer::create(*before[r], configOf({1, 1, 2}, 99), smallModel(), &from));
    WEFT_TRY(ShardedOptimizer::create(*after[r], configOf({1, 1, 3}, 99), other, &to));
    const Status refused = reshard(from.get(), to.get());
    EXPECT_EQ(refused.code(), Code::InvalidArgument);
    EXPECT_NE(refused.text().find("'weight' of 5002 elements"), std::string::npos)
        << refused.text();
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

// Nobody could carry anything over.
TEST(Reshards, NeedARankOfBoth) {
  std::vector<std::shared_ptr<comm::Communicator>> before, after;
  ASSERT_TRUE(comm::createAll(2, {}, &before).ok());
  ASSERT_TRUE(comm::createAll(2, {}, &after).ok());
  const Status status = onThreads(4, [&](std::size_t r) -> Status {
    std::unique_ptr<ShardedOptimizer> shard;
    comm::Communicator& comm = r < 2 ? *before[r] : *after[r - 2];
    WEFT_TRY(ShardedOptimizer::create(comm, configOf({1, 1, 2}, 99), smallModel(), &shard));
    const Status refused = r < 2 ? reshard(shard.get(), nullptr) : reshard(nullptr, shard.get());
    EXPECT_EQ(refused.code(), Code::InvalidUsage);
    EXPECT_NE(refused.text().find("no rank has the old shard and the new one; fix: save"),
              std::string::npos)
        << refused.text();
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

}  // namespace
}  // namespace weft::test
