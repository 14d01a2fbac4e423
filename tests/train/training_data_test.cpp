// SPDX-License-Identifier: Apache-2.0
#include "tools/train/training_data.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "tests/unit/bert_shards/shard_file.h"
#include "tools/train/failure.h"

namespace weft::train {
namespace {

class ShardsAsData : public testing::Test {
 protected:
  ShardsAsData() {
    std::filesystem::create_directory(folder_ / "shards");
    test::writeShard(folder_ / "shards/training_0.hdf5", test::someSamples(20, 32, 6, 1, 300));
    options_.data = folder_ / "shards";
    options_.shape = namedShape("bert");
    options_.length = 32;
    options_.batch = 2;
  }
  void expectRefused(int code, const std::string& text) const {
    try {
      TrainingData data(options_);
      ADD_FAILURE() << text;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), code);
      EXPECT_NE(std::string(failure.what()).find(text), std::string::npos) << failure.what();
    }
  }

  test::TemporaryFolder folder_;
  Options options_;
};

// Readers are the ranks, unless their number is to make no difference.
TEST_F(ShardsAsData, AreReadAsByTheRanks) {
  EXPECT_EQ(TrainingData(options_).order(8), "4 readers with batches of 2");
  options_.accumulate = 2;
  EXPECT_EQ(TrainingData(options_).order(8), "2 readers with batches of 2");
  options_.reproducible = true;
  EXPECT_EQ(TrainingData(options_).order(8), "1 readers with batches of 2");
  options_.readers = 4;
  const TrainingData data(options_);
  EXPECT_EQ(data.order(8), "4 readers with batches of 2");
  EXPECT_EQ(data.description(), options_.data + ", 20 samples in 1 HDF5 files");
}

TEST_F(ShardsAsData, AreForBertAlone) {
  options_.vocabulary = "words.txt";
  expectRefused(64, "has their numbers already; leave it out");
  options_.shape = namedShape("roberta");
  options_.model = "roberta";
  expectRefused(64, "has samples for BERT, HDF5 files of masked words, and not for roberta; name");
}

TEST_F(ShardsAsData, AreNoText) {
  options_.data = folder_.path();
  options_.vocabulary = "";
  expectRefused(65,
                "training_0.hdf5 holds samples for BERT, not text, and would be learned as "
                "bytes; name its folder, --data " +
                    (folder_ / "shards"));
  options_.data = folder_.write("text", "Some text.");
  options_.readers = 2;
  expectRefused(64, "--readers is for --data of HDF5 files; leave it out");
}

}  // namespace
}  // namespace weft::train
