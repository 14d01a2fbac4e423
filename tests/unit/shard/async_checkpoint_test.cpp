// SPDX-License-Identifier: Apache-2.0
// Checkpoints that are written while training goes on.
#include "checkpoints.h"

namespace weft::test {
using namespace shard;
namespace {

Training fourRanks(Degrees degrees) {
  Training run;
  run.ranks = run.microBatches = 4;
  run.config = fp32Config(degrees);
  run.steps = 2;
  return run;
}

// Each rank's writer, made at its first save.
struct Writers {
  std::vector<std::unique_ptr<CheckpointWriter>> of =
      std::vector<std::unique_ptr<CheckpointWriter>>(4);

  CheckpointWriter& at(ShardedOptimizer& shard) {
    auto& writer = of[shard.mesh().rank()];
    if (writer == nullptr) writer = std::make_unique<CheckpointWriter>(shard);
    return *writer;
  }
};

class AsyncCheckpoint : public testing::TestWithParam<Degrees> {};

TEST_P(AsyncCheckpoint, IsOfTheStepAtWhichItWasCalled) {
  const TemporaryFolder dir;
  Training run = fourRanks(GetParam());
  const Result early = trainAll(run);
  run.steps = 6;
  const Result whole = trainAll(run);
  Writers writers;
  run.afterStep = [&](ShardedOptimizer& shard, int steps) -> Status {
    if (steps == 2) WEFT_TRY(writers.at(shard).save(dir.path(), R"({"rows": 12})"));
    if (steps < 6) return {};
    WEFT_TRY(writers.at(shard).wait());
    writers.of[shard.mesh().rank()].reset();
    return {};
  };
  EXPECT_TRUE(trainAll(run).weights == whole.weights);
  Training rest = loading(fourRanks(GetParam()), 2, dir.path());
  EXPECT_TRUE(trainAll(rest).weights == early.weights);
  rest.steps = 6;
  EXPECT_TRUE(trainAll(rest).weights == whole.weights);
}

INSTANTIATE_TEST_SUITE_P(All, AsyncCheckpoint,
                         testing::Values(Degrees{1, 1, 1}, Degrees{1, 1, 4}, Degrees{4, 4, 4},
                                         Degrees{2, 2, 2}));

TEST(AsyncCheckpoints, FollowEachOtherAndTheLastTwoAreKept) {
  const TemporaryFolder dir;
  Training run = fourRanks({1, 2, 4});
  run.steps = 5;
  Writers writers;
  run.afterStep = [&](ShardedOptimizer& shard, int steps) -> Status {
    WEFT_TRY(writers.at(shard).save(dir.path(), ""));
    if (steps == 5) writers.of[shard.mesh().rank()].reset();  // waits
    return {};
  };
  trainAll(run);
  EXPECT_EQ(latestIn(dir.path()), dir / "step-00000005");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir.path()))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"latest", "step-00000004", "step-00000005"}));
}

TEST(AsyncCheckpoints, ASecondSaveOfAStepTouchesNotTheFirst) {
  const TemporaryFolder dir;
  Training run = fourRanks({1, 1, 4});
  run.afterStep = [&](ShardedOptimizer& shard, int steps) -> Status {
    for (int again = 0; steps == 2 && again < 2; ++again)
      WEFT_TRY(saveCheckpoint(shard, dir.path(), ""));
    return {};
  };
  trainAll(run);
  EXPECT_EQ(latestIn(dir.path()), dir / "step-00000002.2");
  EXPECT_TRUE(fs::exists(dir / "step-00000002/index.json"));
}

TEST(AsyncCheckpoints, AFailureIsHeardByTheNextCallOnAllRanks) {
  const TemporaryFolder dir;
  fillFile(dir / "file", "");
  Training run = fourRanks({1, 1, 4});
  Writers writers;
  run.afterStep = [&](ShardedOptimizer& shard, int steps) -> Status {
    CheckpointWriter& writer = writers.at(shard);
    if (steps == 1) return writer.save(dir / "file", "");
    const Status failed = writer.save(dir / "good", "");
    EXPECT_EQ(failed.code(), Code::SystemError);
    EXPECT_NE(failed.text().find("rank 0: cannot make folder '" + (dir / "file")),
              std::string::npos)
        << failed.text();
    WEFT_TRY(writer.save(dir / "good", ""));
    WEFT_TRY(writer.wait());
    writers.of[shard.mesh().rank()].reset();
    return {};
  };
  trainAll(run);
  EXPECT_EQ(latestIn(dir / "good"), dir / "good/step-00000002");
}

TEST(AsyncCheckpoints, MetaMustBeJson) {
  const TemporaryFolder dir;
  Training run = fourRanks({1, 1, 4});
  run.afterStep = [&](ShardedOptimizer& shard, int) {
    return saveCheckpoint(shard, dir.path(), "{");
  };
  Status failed;
  trainAll(run, &failed);
  EXPECT_EQ(failed.code(), Code::InvalidArgument);
  EXPECT_NE(failed.text().find("not JSON"), std::string::npos);
}

}  // namespace
}  // namespace weft::test
