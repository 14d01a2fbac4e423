// SPDX-License-Identifier: Apache-2.0
// Whole runs of weft-train on BERT's HDF5 shards.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/train/small_runs.h"
#include "tests/unit/bert_shards/shard_file.h"

namespace weft::train {
namespace {

class ShardRuns : public SmallRuns {
 protected:
  ShardRuns() {
    std::filesystem::create_directory(folder_ / "shards");
    for (uint32_t i = 0; i < 4; ++i)
      test::writeShard(fmt::format("{}/wiki_training_{}.hdf5", folder_ / "shards", i),
                       test::someSamples(40 + 3 * i, 32, 6, i, 300));
  }
  std::string flags() const {
    return fmt::format("--data {} --model bert --vocab-size 300 --steps 12 --batch 2 ",
                       folder_ / "shards");
  }
  void expectRefused(const std::string& flags, int code, const std::string& text) const {
    const Outcome outcome = shell(command(flags));
    EXPECT_EQ(outcome.exitCode, code) << outcome.output;
    EXPECT_NE(outcome.output.find(text), std::string::npos) << outcome.output;
  }
};

// Whichever ranks learn them.
TEST_F(ShardRuns, ResumeAtTheVerySampleByTheSameReaders) {
  const std::string some = flags() + "--reproducible ", save = folder_ / "save";
  const Curve whole =
      train(fmt::format("{} --grad-accum 2 --readers 2 --save-every 8 --save {}", some, save));
  const std::string resume = fmt::format("{} --ranks 2 --resume {}/step-00000008 ", some, save);
  const Curve resumed = train(resume + "--readers 2 --shard zero3");
  EXPECT_EQ(resumed.losses, whole.losses);
  EXPECT_EQ(resumed.weights, whole.weights);
  expectRefused(resume, 64,
                "has read its files as 2 readers with batches of 2, and this run would as 1 "
                "readers with batches of 2: give --readers and --batch as they were");
}

TEST_F(ShardRuns, EvaluateAShareOfTheSamples) {
  const Outcome outcome = shell(command(
      flags() + fmt::format("--ranks 2 --eval-every 6 --split 80,20 --json {}", folder_ / "json")));
  EXPECT_EQ(outcome.exitCode, 0) << outcome.output;
  EXPECT_GT(nlohmann::json::parse(std::ifstream(folder_ / "json")).at("validation_loss"), 4);
}

TEST_F(ShardRuns, EndWithTheNameOfAFileThatIsCutOff) {
  std::filesystem::resize_file(folder_ / "shards/wiki_training_2.hdf5", 1000);
  expectRefused(flags(), 65, "wiki_training_2.hdf5 as HDF5: ");
}

}  // namespace
}  // namespace weft::train
