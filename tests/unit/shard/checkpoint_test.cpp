// SPDX-License-Identifier: Apache-2.0
// A checkpoint of any run goes on as any other.
#include <algorithm>

#include "checkpoint/index.h"
#include "checkpoint/saved_offsets.h"
#include "checkpoints.h"
#include "tests/unit/slow_build.h"

namespace weft::test {
using namespace shard;
namespace {

struct Shape {
  const char* name;
  int ranks;
  Degrees degrees;
  std::uint64_t bucketElements;
};

constexpr Shape kShapes[] = {
    {"alone", 1, {1, 1, 1}, 4000},       {"none2", 2, {1, 1, 1}, 100},
    {"zero1on3", 3, {1, 1, 3}, 4000},    {"zero2on4", 4, {1, 4, 4}, 1 << 20},
    {"zero3on4", 4, {4, 4, 4}, 5000},    {"mics2on4", 4, {2, 2, 2}, 100},
    {"mixed248on8", 8, {2, 4, 8}, 9000},
};

Training runOf(const Shape& shape, int microBatches) {
  Training run;
  run.ranks = shape.ranks;
  run.config = fp32Config(shape.degrees);
  run.config.bucketElements = shape.bucketElements;
  run.config.reproducible = true;
  run.microBatches = microBatches;
  run.steps = 4;
  run.clipNorm = 0.4;
  return run;
}

class Checkpoint : public testing::TestWithParam<Shape> {
 protected:
  // Saved by one and loaded by all others whose ranks divide the batch.
  static void goOn(int microBatches, double tolerance) {
    const TemporaryFolder dir;
    if (microBatches % GetParam().ranks != 0) return;
    const Result saved = trainAll(savingAt(runOf(GetParam(), microBatches), 2, dir.path()));
    const Result uninterrupted = trainAll(runOf(kShapes[0], microBatches));
    for (const Shape& shape : kShapes) {
      if (microBatches % shape.ranks != 0) continue;
      Training rest = loading(runOf(shape, microBatches), 2, dir.path());
      rest.steps = 2;
      EXPECT_TRUE(trainAll(rest).weights == saved.weights) << shape.name;
      rest.steps = 4;
      EXPECT_LE(farthest(trainAll(rest), uninterrupted), tolerance) << shape.name;
    }
  }
};

// Of any optimizer; the state is that of a beginning, whatever was there before.
TEST(WeightsAlone, ComeWithoutStateAndSteps) {
  const TemporaryFolder dir;
  const Training run = runOf(kShapes[2], 6);
  const Result saved = trainAll(savingAt(run, 2, dir.path()));
  Training other = run;
  other.steps = 3;
  other.config.optimizer.kind = Optimizer::Sgd;
  other.config.optimizer.momentum = 0.9;
  other.afterStep = [&](ShardedOptimizer& shard, int steps) -> Status {
    if (steps != 3) return {};
    EXPECT_EQ(loadCheckpoint(shard, dir.path(), nullptr).code(), Code::InvalidArgument);
    WEFT_TRY(loadCheckpoint(shard, dir.path(), nullptr, Loaded::Weights));
    EXPECT_EQ(shard.state().steps, 0);
    for (std::uint32_t b = 0; b < shard.state().buckets(); ++b)
      shard.state().visitOwn(b, [](const StateRun& own) {
        EXPECT_EQ(std::count(own.state[0], own.state[0] + own.slice.n, 0.0f),
                  static_cast<std::ptrdiff_t>(own.slice.n));
      });
    return {};
  };
  EXPECT_TRUE(trainAll(other).weights == saved.weights);
}

// Tensors as earlier checkpoints have them: "param/array@from", and no offsets.
void writeAsFormat1(const std::string& path) {
  checkpoint::SafetensorsFile file;
  ASSERT_TRUE(checkpoint::SafetensorsFile::open(path, &file).ok());
  const std::optional<checkpoint::SavedOffsets> offsets = checkpoint::parseOffsets(file.metadata());
  std::vector<checkpoint::Tensor> tensors = file.tensors();
  for (checkpoint::Tensor& t : tensors) t.name += "@" + std::to_string(offsets->at(t.name));
  std::string content = contentOf(path), header;
  content.erase(0, tensors.front().offset);
  ASSERT_TRUE(safetensorsHeader(tensors, {{"format", "weft"}}, &header).ok());
  fillFile(path, header + content);
}

TEST(CheckpointOfFormat1, IsRead) {
  const TemporaryFolder dir;
  const Training run = runOf(kShapes[2], 6);
  const Result saved = trainAll(savingAt(run, 2, dir.path()));
  const std::string at = latestIn(dir.path()) + "/";
  checkpoint::CheckpointIndex index;
  ASSERT_TRUE(checkpoint::readIndex(at + checkpoint::kIndexFile, &index).ok());
  for (checkpoint::CheckpointIndex::File& f : index.files) {
    writeAsFormat1(at + f.name);
    checkpoint::InputFile file;
    ASSERT_TRUE(checkpoint::InputFile::open(at + f.name, &file).ok());
    f.bytes = file.bytes();
    ASSERT_TRUE(file.sha256(&f.sha256).ok());
  }
  std::string json;
  ASSERT_TRUE(printIndex(index, &json).ok());
  fillFile(at + checkpoint::kIndexFile, json);
  Training rest = loading(run, 2, dir.path());
  rest.steps = 2;
  EXPECT_TRUE(trainAll(rest).weights == saved.weights);
}

// The end is that of a run without interruption: to the bit for powers of two. Sanitizers have seen all that happens once
// each number of ranks has saved.
TEST_P(Checkpoint, GoesOnAsAnyOther) {
  goOn(8, 0);
  if (GetParam().ranks <= 4 && (!kSlowBuild || 8 % GetParam().ranks != 0)) goOn(24, 1e-5);
}

std::string nameOf(const testing::TestParamInfo<Shape>& tested) { return tested.param.name; }
INSTANTIATE_TEST_SUITE_P(All, Checkpoint, testing::ValuesIn(kShapes), nameOf);

// What else there is in a state: types, rounding and optimizers.
struct Kind {
  const char* name;
  reduce::DType type;
  bool master;
  reduce::RoundingMode rounding;
  Optimizer optimizer;
  double momentum;
};

class CheckpointOf : public testing::TestWithParam<Kind> {
 protected:
  static Training run(int ranks, Degrees degrees) {
    Training r = runOf({"", ranks, degrees, 777}, 8);
    r.config.paramType = GetParam().type;
    r.config.master = GetParam().master;
    r.config.rounding = GetParam().rounding;
    r.config.seed = 5;
    r.config.optimizer.kind = GetParam().optimizer;
    r.config.optimizer.momentum = GetParam().momentum;
    return r;
  }
};

TEST_P(CheckpointOf, GoesOnToTheBit) {
  const TemporaryFolder dir;
  trainAll(savingAt(run(4, {1, 2, 4}), 2, dir.path()));
  const Result whole = trainAll(run(1, {1, 1, 1}));
  EXPECT_TRUE(trainAll(loading(run(2, {2, 2, 2}), 2, dir.path())).weights == whole.weights);
  EXPECT_TRUE(trainAll(loading(run(1, {1, 1, 1}), 2, dir.path())).weights == whole.weights);
  EXPECT_TRUE(trainAll(loading(run(8, {1, 1, 4}), 2, dir.path())).weights == whole.weights);
}

constexpr auto kNearest = reduce::RoundingMode::Nearest, kRandom = reduce::RoundingMode::Stochastic;
INSTANTIATE_TEST_SUITE_P(
    All, CheckpointOf,
    testing::Values(Kind{"bf16", reduce::DType::BF16, true, kNearest, Optimizer::AdamW, 0},
                    Kind{"bf16random", reduce::DType::BF16, true, kRandom, Optimizer::AdamW, 0},
                    Kind{"f16", reduce::DType::F16, true, kNearest, Optimizer::Lamb, 0},
                    Kind{"bf16alone", reduce::DType::BF16, false, kRandom, Optimizer::AdamW, 0},
                    Kind{"lamb", reduce::DType::F32, true, kNearest, Optimizer::Lamb, 0},
                    Kind{"momentum", reduce::DType::F32, true, kNearest, Optimizer::Sgd, 0.9},
                    Kind{"sgd", reduce::DType::F32, true, kNearest, Optimizer::Sgd, 0}),
    [](const testing::TestParamInfo<Kind>& tested) { return std::string(tested.param.name); });

// Weights in fp32 become those of another type.
TEST(CheckpointOfAnotherType, IsRounded) {
  const TemporaryFolder dir;
  const Result saved = trainAll(savingAt(runOf(kShapes[3], 8), 2, dir.path()));
  for (const bool master : {false, true}) {
    Training run = loading(runOf(kShapes[4], 8), 2, dir.path());
    run.steps = 2;
    run.config.paramType = reduce::DType::BF16;
    run.config.master = master;
    const Result loaded = trainAll(run);
    for (std::size_t p = 0; p < saved.weights.size(); ++p) {
      std::vector<std::uint16_t> bits(saved.weights[p].size());
      std::vector<float> rounded(bits.size());
      reduce::castFloats(reduce::DType::BF16, bits.data(), saved.weights[p].data(), bits.size(), {},
                         0);
      reduce::widen(reduce::DType::BF16, rounded.data(), bits.data(), bits.size());
      EXPECT_TRUE(loaded.weights[p] == rounded) << p;
    }
  }
}

}  // namespace
}  // namespace weft::test
