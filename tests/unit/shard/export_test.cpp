// SPDX-License-Identifier: Apache-2.0
// Exports, read by readers that know nothing of weft.
#include "shard/export.h"

#include <sys/stat.h>

#include "checkpoint/durable_file.h"
#include "checkpoints.h"
#include "tests/command.h"

namespace weft::test {
using namespace shard;
namespace {

std::vector<ParameterSpec> shapedModel() {
  std::vector<ParameterSpec> model = smallModel();
  model[0].shape = model[4].shape = {60, 50};
  model[3].shape = {3, 1667};
  return model;
}

Training runOf(Degrees degrees, reduce::DType paramType) {
  Training run;
  run.ranks = run.microBatches = 4;
  run.config = fp32Config(degrees);
  run.config.paramType = paramType;
  run.steps = 2;
  run.model = shapedModel();
  return run;
}

std::string outputOf(const std::string& command) {
  const auto [exitCode, output] = runCommand(command);
  return exitCode == 0 ? output : "failed: " + output;
}

bool has(const char* program) {
  return std::system((std::string(program) + " --version > /dev/null 2>&1").c_str()) == 0;
}

// What the readers print: of values their hash, where `hashed`.
std::string expected(const Result& trained, const char* type, bool hashed = true) {
  const std::vector<ParameterSpec> model = shapedModel();
  std::vector<std::string> lines;
  for (std::size_t p = 0; p < model.size(); ++p) {
    if (model[p].tiedTo >= 0) continue;
    std::string line = model[p].name + " " + type + " ";
    const std::vector<std::uint64_t> flat{model[p].elements};
    for (const std::uint64_t n : model[p].shape.empty() ? flat : model[p].shape)
      line += (line.ends_with(' ') ? "" : "x") + std::to_string(n);
    checkpoint::Sha256 hash;
    hash.add(trained.weights[p].data(), trained.weights[p].size() * sizeof(float));
    lines.push_back(line + (hashed ? " " + hash.hex() : "") + "\n");
  }
  std::ranges::sort(lines);
  std::string all;
  for (const std::string& line : lines) all += line;
  return all + "metadata format pt\nmetadata output embedding\n";
}

// The result of a run whose last step is exported to this file.
Result exporting(Training run, bool full, const std::string& file) {
  run.afterStep = [&](ShardedOptimizer& shard, int steps) {
    return steps == 2 ? exportModel(shard, file, full) : Status();
  };
  return trainAll(run);
}

std::string scriptOf(const char* name) { return fs::path(__FILE__).parent_path() / name; }

class Exported : public testing::TestWithParam<Degrees> {
 protected:
  // What Python reads of an export of the last step, and the weights then.
  std::string readBack(const Training& run, bool full, Result* trained) {
    const TemporaryFolder dir;
    *trained = exporting(run, full, dir / "model.safetensors");
    const std::string read =
        outputOf("python3 " + scriptOf("read_safetensors.py") + " " + (dir / "model.safetensors"));
    const std::size_t line = read.find('\n');
    RecordProperty("reader", read.substr(0, line));
    return line == read.npos ? read : read.substr(line + 1);
  }
};

TEST_P(Exported, IsWhatTheModelComputesWith) {
  if (!has("python3")) GTEST_SKIP() << "needs python3";
  Result trained;
  const std::string f32 = readBack(runOf(GetParam(), reduce::DType::F32), false, &trained);
  EXPECT_EQ(f32, expected(trained, "F32"));
  const std::string bf16 = readBack(runOf(GetParam(), reduce::DType::BF16), false, &trained);
  EXPECT_EQ(bf16, expected(trained, "BF16"));
}

TEST_P(Exported, InFullPrecisionIsTheMasterWeights) {
  if (!has("python3")) GTEST_SKIP() << "needs python3";
  Result trained, rounded;
  const std::string f32 = readBack(runOf(GetParam(), reduce::DType::F32), true, &trained);
  EXPECT_EQ(f32, expected(trained, "F32"));
  // The initial weights are of 16 bits here, so the masters are others than above.
  const std::string masters = readBack(runOf(GetParam(), reduce::DType::BF16), true, &rounded);
  EXPECT_NE(masters, expected(rounded, "F32"));
  EXPECT_NE(masters.find("weight F32 3x1667"), std::string::npos) << masters;
}

INSTANTIATE_TEST_SUITE_P(All, Exported,
                         testing::Values(Degrees{1, 1, 1}, Degrees{1, 2, 4}, Degrees{4, 4, 4},
                                         Degrees{2, 2, 2}));

// Runs where @huggingface/hub is installed for node: npm install -g @huggingface/hub, and
// NODE_PATH.
TEST(Export, OpensInHuggingFacesOwnReader) {
  const TemporaryFolder dir;
  const std::string file = dir / "model.safetensors";
  const std::string reader = "node " + scriptOf("read_safetensors.cjs") + " " + file;
  for (const reduce::DType type : {reduce::DType::F32, reduce::DType::BF16, reduce::DType::F16}) {
    const Result trained = exporting(runOf({1, 2, 4}, type), false, file);
    const int rc = std::system((reader + " > /dev/null 2>&1").c_str());
    if (rc != 0 && WEXITSTATUS(rc) != 1) GTEST_SKIP() << "needs node and @huggingface/hub";
    const char* const name = type == reduce::DType::F32    ? "F32"
                             : type == reduce::DType::BF16 ? "BF16"
                                                           : "F16";
    EXPECT_EQ(outputOf(reader), expected(trained, name, false));
  }
}

TEST(Export, ThatCannotBeWrittenLeavesWhatWasThere) {
  const TemporaryFolder dir;
  Training run = runOf({4, 4, 4}, reduce::DType::F32);
  const std::string old = dir / "old.safetensors";
  fillFile(old, "old");
  run.afterStep = [&](ShardedOptimizer& shard, int steps) -> Status {
    if (steps == 1) fs::create_directories(old + ".tmp");  // where it would write
    const Status failed = exportModel(shard, old, true);
    EXPECT_EQ(failed.code(), Code::SystemError);
    EXPECT_NE(failed.text().find("rank 0: cannot create '" + old), std::string::npos)
        << failed.text();
    return {};
  };
  trainAll(run);
  EXPECT_EQ(contentOf(old), "old");
}

TEST(Export, LeavesDevicesAndFoldersWhatTheyAre) {
  const TemporaryFolder dir;
  const std::string fifo = dir / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Training run = runOf({1, 1, 1}, reduce::DType::F32);
  run.afterStep = [&](ShardedOptimizer& shard, int) -> Status {
    for (const std::string& path : {fifo, dir / "."}) {
      const Status failed = exportModel(shard, path, true);
      EXPECT_EQ(failed.code(), Code::InvalidArgument);
      EXPECT_NE(failed.text().find("is no regular file"), std::string::npos) << failed.text();
    }
    return {};
  };
  trainAll(run);
  EXPECT_TRUE(fs::is_fifo(fifo));
}

TEST(Export, ShapesMustHoldTheElements) {
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{60, 51}, {0}, {~0ull, 2}}) {
    Training run = runOf({1, 1, 1}, reduce::DType::F32);
    run.model[0].shape = shape;
    Status failed;
    trainAll(run, &failed);
    EXPECT_EQ(failed.code(), Code::InvalidArgument);
    EXPECT_NE(failed.text().find("'embedding'"), std::string::npos) << failed.text();
  }
}

}  // namespace
}  // namespace weft::test
