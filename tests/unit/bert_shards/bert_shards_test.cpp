// SPDX-License-Identifier: Apache-2.0
#include "tools/train/bert_shards.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "tests/temporary_folder.h"
#include "tests/unit/bert_shards/shard_file.h"
#include "tools/train/bert_shard_samples.h"
#include "tools/train/failure.h"

namespace weft::train {
namespace {

using test::Datasets;

constexpr size_t kLength = 12, kMasked = 4;

// What the exception of an action says; its code is `code`.
std::string refusalOf(const std::function<void()>& action, int code = 65) {
  try {
    action();
    return "accepted";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), code);
    return failure.what();
  }
}

class BertShardFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const Datasets& sets) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    test::writeShard(folder_ / name, sets);
    return folder_ / name;
  }
  Datasets writeSome(const std::string& name, hsize_t samples, uint32_t seed) const {
    Datasets sets = test::someSamples(samples, kLength, kMasked, seed);
    write(name, sets);
    return sets;
  }
  // What reading all of one file says, with this in it.
  std::string refusalOf(const std::function<void(Datasets&)>& spoil) const {
    Datasets sets = test::someSamples(3, kLength, kMasked, 1);
    spoil(sets);
    const std::string path = write("spoilt.hdf5", sets);
    const std::string said = train::refusalOf([&] {
      const BertShards shards(path, kLength);
      const ShardSamples samples = shards.read(shards.pieces({0, shards.samples()}).at(0));
      Batch batch;
      for (uint64_t i = 0; i < samples.piece.count; ++i) shards.append(samples, i, 100, batch);
    });
    if (said == "accepted") return said;
    EXPECT_TRUE(said.starts_with(path + ", dataset ")) << said;
    return said.substr(std::min(said.size(), path.size() + 10));
  }

  test::TemporaryFolder folder_;
};

std::vector<int64_t> wide(const std::vector<int32_t>& values) {
  return {values.begin(), values.end()};
}

TEST_F(BertShardFiles, ComeBackAsTheyWereWritten) {
  const Datasets sets = writeSome("one.hdf5", 7, 3);
  const BertShards shards(folder_ / "one.hdf5", kLength);
  const ShardSamples read = shards.read({0, 0, 7, true});
  EXPECT_EQ(read.inputIds, sets.at("input_ids").values);
  EXPECT_EQ(read.maskedPositions, sets.at("masked_lm_positions").values);
  EXPECT_EQ(read.maskedIds, sets.at("masked_lm_ids").values);
  const ShardSamples part = shards.read({0, 2, 4, false});
  EXPECT_TRUE(
      std::equal(part.inputIds.begin(), part.inputIds.end(), read.inputIds.begin() + 2 * kLength));
  Batch batch;
  for (uint64_t i = 0; i < 7; ++i) shards.append(read, i, 100, batch);
  EXPECT_EQ(batch.tokens, wide(sets.at("input_ids").values));
  EXPECT_EQ(batch.segments, wide(sets.at("segment_ids").values));
  EXPECT_EQ(batch.labels, wide(sets.at("next_sentence_labels").values));
  for (size_t i = 0; i < 7; ++i) {
    const auto mask = sets.at("input_mask").values.begin() + static_cast<ptrdiff_t>(i * kLength);
    EXPECT_EQ(batch.used[i], std::count(mask, mask + kLength, 1));
    std::vector<int64_t> targets(kLength, Batch::kNoTarget);
    for (size_t m = i * kMasked; m < (i + 1) * kMasked; ++m)
      if (const int32_t at = sets.at("masked_lm_positions").values[m]; at != 0)
        targets[static_cast<size_t>(at)] = sets.at("masked_lm_ids").values[m];
    EXPECT_EQ(std::vector(batch.targets.begin() + static_cast<ptrdiff_t>(i * kLength),
                          batch.targets.begin() + static_cast<ptrdiff_t>((i + 1) * kLength)),
              targets);
  }
}

TEST_F(BertShardFiles, OfAFolderAreThoseForTraining) {
  EXPECT_FALSE(isBertShards(folder_.path()));
  writeSome("wiki_training_1.hdf5", 4, 1);
  writeSome("wiki_test_0.hdf5", 4, 2);
  writeSome("wiki_training_0.hdf5", 5, 3);
  folder_.write("README", "text");
  EXPECT_TRUE(isBertShards(folder_.path()));
  const BertShards shards(folder_.path(), kLength);
  ASSERT_EQ(shards.files(), 2u);
  EXPECT_EQ(shards.path(0), folder_ / "wiki_training_0.hdf5");
  EXPECT_EQ(shards.samples(), 9u);
  const auto pieces = shards.pieces({3, 7});
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].first, 3u);
  EXPECT_EQ(pieces[0].count, 2u);
  EXPECT_EQ(pieces[1].count, 2u);
  EXPECT_FALSE(pieces[1].isWhole);
  writeSome("part/part_0.h5", 5, 3);
  EXPECT_EQ(BertShards(folder_ / "part", kLength).files(), 1u);
  EXPECT_NE(BertShards(folder_ / "part", kLength).fingerprint(), shards.fingerprint());
}

TEST_F(BertShardFiles, ThatAreWrongAreNamedWithTheDataset) {
  EXPECT_EQ(refusalOf([](Datasets&) {}), "accepted");
  EXPECT_EQ(refusalOf([](Datasets& sets) { sets.erase("masked_lm_ids"); }),
            "masked_lm_ids: the file has none of that name");
  EXPECT_EQ(refusalOf([](Datasets& sets) { sets.at("input_mask").type = H5T_IEEE_F32LE; }),
            "input_mask: is not of integers, which it is to be");
  EXPECT_EQ(refusalOf([](Datasets& sets) {
              sets.at("segment_ids").shape = {kLength, 3};
            }),
            "segment_ids: its shape is [12, 3], and beside input_ids it is to be [3, 12]");
  EXPECT_EQ(
      refusalOf([](Datasets& sets) { sets.at("input_ids").shape = {3 * kLength}; }),
      "input_ids: it is to have two dimensions, samples and what each has of it, and samples");
  EXPECT_EQ(refusalOf([](Datasets& sets) { sets.at("input_ids").values[14] = 100; }),
            "input_ids: sample 1 has the token 100, which is not below the model's vocabulary of "
            "100; name the tokenizer's as --vocab-size");
  EXPECT_EQ(refusalOf([](Datasets& sets) { sets.at("next_sentence_labels").values[2] = 2; }),
            "next_sentence_labels: sample 2 has a 2, not 0 or 1");
  EXPECT_EQ(refusalOf([](Datasets& sets) { sets.at("input_mask").values[0] = 0; }),
            "input_mask: sample 0 has padding that is not at its end alone");
  EXPECT_EQ(refusalOf([](Datasets& sets) {
              sets.at("masked_lm_positions").values[0] = 2000000000;
            }).substr(0, 53),
            "masked_lm_positions: sample 0 has position 2000000000");
  write("long.hdf5", test::someSamples(3, 16, 4, 1));
  const std::string wrongLength =
      train::refusalOf([&] { BertShards(folder_ / "long.hdf5", kLength); });
  EXPECT_NE(wrongLength.find("its samples have 16 tokens, and --seq is 12; give --seq 16"),
            std::string::npos)
      << wrongLength;
}

TEST_F(BertShardFiles, ThatAreCutOffAreNamed) {
  writeSome("one.hdf5", 7, 3);
  const auto size = std::filesystem::file_size(folder_ / "one.hdf5");
  for (const auto left : {size - 1, size / 2, size_t{20}, size_t{0}}) {
    std::filesystem::resize_file(folder_ / "one.hdf5", left);
    const std::string said = train::refusalOf([&] { BertShards(folder_ / "one.hdf5", kLength); });
    EXPECT_TRUE(said.starts_with("cannot read " + (folder_ / "one.hdf5") + " as HDF5: ")) << said;
  }
  EXPECT_NE(train::refusalOf([&] { BertShards(folder_ / "none.h5", kLength); }).find("none.h5"),
            std::string::npos);
}

// What lies in the middle of a file is found out as it is read, or not at all: its bytes are compressed, and have a
// checksum.
TEST_F(BertShardFiles, ThatAreDamagedAreNamedAsTheyAreRead) {
  writeSome("one.hdf5", 40, 3);
  std::string bytes(std::filesystem::file_size(folder_ / "one.hdf5"), 0);
  std::ifstream(folder_ / "one.hdf5").read(bytes.data(), static_cast<ptrdiff_t>(bytes.size()));
  const size_t at = bytes.find("\x78\x5e");  // a deflated chunk
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 16, 16, '\xff');
  const BertShards shards(folder_.write("bad.hdf5", bytes), kLength);
  const std::string said = train::refusalOf([&] { shards.read({0, 0, 40, true}); });
  EXPECT_NE(said.find("bad.hdf5, dataset "), std::string::npos) << said;
  EXPECT_NE(said.find("cannot be read: "), std::string::npos) << said;
}

std::vector<int64_t> tokensOfStep(const BertShardSamples& samples, uint64_t step, size_t perStep,
                                  size_t ranks) {
  std::vector<int64_t> tokens;
  for (size_t first = 0; first < perStep; first += perStep / ranks) {
    const Batch batch = samples.batch(step, first, perStep / ranks);
    EXPECT_EQ(batch.length, kLength);
    tokens.insert(tokens.end(), batch.tokens.begin(), batch.tokens.end());
  }
  return tokens;
}

// A reader goes once through each file that it has, by batches of it, whoever asks and whenever.
TEST_F(BertShardFiles, AreDealtToReadersWhateverTheRanks) {
  std::vector<Datasets> files;
  for (uint32_t i = 0; i < 4; ++i)
    files.push_back(writeSome("training_" + std::to_string(i) + ".hdf5", 5 + 2 * i, i));
  const BertShards shards(folder_.path(), kLength);
  const ShardReading reading{100, 2, 2, 8, 42};
  const BertShardSamples samples(shards, {0, shards.samples()}, reading);
  const BertShardOrder order({2, 3, 4, 5}, 2, 42);
  std::vector<std::vector<int64_t>> read(2);  // tokens, by reader
  for (uint64_t step = 0; step < 12; ++step) {
    const std::vector<int64_t> tokens = tokensOfStep(samples, step, 8, 1);
    EXPECT_EQ(tokens,
              tokensOfStep(BertShardSamples(shards, {0, shards.samples()}, reading), step, 8, 4));
    for (size_t g = 0; g < 8; ++g)
      read[g / 2 % 2].insert(read[g / 2 % 2].end(),
                             tokens.begin() + static_cast<ptrdiff_t>(g * kLength),
                             tokens.begin() + static_cast<ptrdiff_t>((g + 1) * kLength));
  }
  for (uint64_t reader = 0; reader < 2; ++reader) {
    size_t at = 0;  // samples
    for (const size_t file : order.filesOf(reader, 0)) {
      const std::vector<int32_t>& ids = files[file].at("input_ids").values;
      std::multiset<std::vector<int64_t>> unseen;
      for (size_t i = 0; i < ids.size(); i += kLength)
        unseen.insert({ids.begin() + static_cast<ptrdiff_t>(i),
                       ids.begin() + static_cast<ptrdiff_t>(i + kLength)});
      for (size_t i = 0; i < (5 + 2 * file) / 2 * 2; ++i, ++at) {
        const auto start = read[reader].begin() + static_cast<ptrdiff_t>(at * kLength);
        const auto found = unseen.find({start, start + kLength});
        ASSERT_NE(found, unseen.end()) << "reader " << reader << " file " << file;
        unseen.erase(found);
      }
    }
  }
}

// The first file is waited for, and the next one read meanwhile.
TEST_F(BertShardFiles, AreReadWhileTheOnesBeforeAreLearned) {
  for (uint32_t i = 0; i < 3; ++i) writeSome("training_" + std::to_string(i) + ".hdf5", 8, i);
  const BertShards shards(folder_.path(), kLength);
  const BertShardSamples samples(shards, {0, 24}, {100, 4, 1, 8, 1});
  samples.batch(0, 0, 8);
  const double first = samples.secondsBeside();
  for (uint64_t step = 1; step < 1000 && samples.secondsBeside() == first; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    samples.batch(step, 0, 8);
  }
  EXPECT_GT(samples.secondsBeside(), first);
}

TEST_F(BertShardFiles, ThatGiveNoBatchesAreRefused) {
  writeSome("training_0.hdf5", 9, 0);
  writeSome("training_1.hdf5", 3, 0);
  const BertShards shards(folder_.path(), kLength);
  const auto source = [&](SequenceRange part, const ShardReading& reading) {
    return [&, part, reading] { BertShardSamples(shards, part, reading); };
  };
  EXPECT_EQ(train::refusalOf(source({0, 12}, {100, 4, 1, 8, 1})),
            (folder_ / "training_1.hdf5") + " has 3 samples, less than a --batch of 4");
  EXPECT_EQ(train::refusalOf(source({0, 11}, {100, 4, 1, 8, 1})), "accepted");
  EXPECT_EQ(train::refusalOf(source({7, 11}, {100, 4, 1, 8, 1})),
            "samples 7 to 11 of the 12 in these HDF5 files are less than a --batch of 4; --split "
            "gives shares of samples");
  EXPECT_EQ(train::refusalOf(source({0, 12}, {100, 2, 3, 8, 1}), 64),
            "--readers 3 does not divide the 4 batches of a step, of which each reader gives as "
            "many");
}

TEST_F(BertShardFiles, ThatCannotBeReadAreToldWhereTheyAreNeeded) {
  writeSome("training_0.hdf5", 8, 0);
  writeSome("training_1.hdf5", 8, 1);
  writeSome("training_2.hdf5", 8, 2);
  const BertShards shards(folder_.path(), kLength);
  const BertShardSamples samples(shards, {0, 24}, {100, 4, 1, 8, 1});
  samples.batch(0, 0, 8);
  for (const char* name : {"training_0.hdf5", "training_1.hdf5", "training_2.hdf5"})
    std::filesystem::resize_file(folder_ / name, 20);
  const std::string said = train::refusalOf([&] {
    for (uint64_t step = 1; step < 20; ++step) samples.batch(step, 0, 8);
  });
  // One of them may have been open already, or was about to be.
  EXPECT_TRUE(said.starts_with("cannot read ") || said.find(" cannot be read: ") != said.npos ||
              said.find(" cannot be opened: ") != said.npos)
      << said;
}

}  // namespace
}  // namespace weft::train
