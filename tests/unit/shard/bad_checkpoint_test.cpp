// SPDX-License-Identifier: Apache-2.0
// What cannot be loaded or saved is an error that says why, on all ranks, and changes nothing.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <barrier>

#include "checkpoint/index.h"
#include "checkpoints.h"

namespace weft::test {
using namespace shard;
namespace {

constexpr Code kDamaged = Code::SystemError;  // where another checkpoint may be whole

Training twoRanks() {
  Training run;
  run.ranks = run.microBatches = 2;
  run.config = fp32Config({1, 2, 2});
  return run;
}

class BadCheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    const Result saved = trainAll(savingAt(twoRanks(), 2, dir_.path()));
    at_ = latestIn(dir_.path());
  }

  // Loads it into a run of two steps, which must go on as if nothing had been.
  void refuses(const std::string& why, Code code = Code::InvalidArgument,
               const std::string& dir = "", Training run = twoRanks()) {
    const Result undisturbed = trainAll(run);
    run.afterStep = [&](ShardedOptimizer& shard, int steps) -> Status {
      if (steps != 2) return {};
      const Status loaded = loadCheckpoint(shard, dir.empty() ? dir_.path() : dir, nullptr);
      EXPECT_EQ(loaded.code(), code) << loaded.text();
      EXPECT_NE(loaded.text().find(why), std::string::npos) << loaded.text();
      return {};
    };
    EXPECT_TRUE(trainAll(run).weights == undisturbed.weights);
  }

  std::string shard(int which) const {
    return at_ + "/shard-0000" + std::to_string(which) + "-of-00002.safetensors";
  }
  void flip(const std::string& path, std::size_t byte) {
    std::string content = contentOf(path);
    content[byte] = static_cast<char>(content[byte] ^ 1);
    fillFile(path, content);
  }
  void edit(const std::string& path, const std::string& from, const std::string& to) {
    std::string content = contentOf(path);
    const std::size_t at = content.find(from);
    ASSERT_NE(at, std::string::npos);
    fillFile(path, content.replace(at, from.size(), to));
  }

  TemporaryFolder dir_;
  std::string at_;
};

TEST_F(BadCheckpoint, TruncatedNamesTheFile) {
  fs::resize_file(shard(1), fs::file_size(shard(1)) - 4);
  refuses(shard(1), kDamaged);
}

TEST_F(BadCheckpoint, FlippedByteNamesTheFile) {
  flip(shard(1), fs::file_size(shard(1)) / 2);
  refuses(shard(1) + "' is damaged", kDamaged);
}

TEST_F(BadCheckpoint, FlippedByteOfAHeaderNamesTheFile) {
  flip(shard(0), 40);
  refuses(shard(0), kDamaged);
}

TEST_F(BadCheckpoint, ChangedIndexIsDamaged) {
  edit(at_ + "/index.json", "\"steps\": 2", "\"steps\": 3");
  refuses("index.json' is damaged", kDamaged);
}

TEST_F(BadCheckpoint, TruncatedIndexIsDamaged) {
  fs::resize_file(at_ + "/index.json", 100);
  refuses("index.json' is damaged", kDamaged);
}

TEST_F(BadCheckpoint, MissingFileIsNamed) {
  fs::remove(shard(0));
  refuses(shard(0), Code::SystemError);
}

TEST_F(BadCheckpoint, MissingIndexIsNamed) {
  fs::remove(at_ + "/index.json");
  refuses(at_ + "/index.json", Code::SystemError);
}

TEST_F(BadCheckpoint, NewerSaysSo) {
  edit(at_ + "/index.json", "\"version\": 2", "\"version\": 3");
  refuses("newer weft");
}

TEST_F(BadCheckpoint, ForeignSaysSo) {
  fillFile(at_ + "/index.json", R"({"model": "somebody's"})");
  refuses("is not of a checkpoint of weft");
}

// Each element must be there, and once.
TEST_F(BadCheckpoint, IncompleteNamesTheParameter) {
  const std::string path = at_ + "/index.json";
  checkpoint::CheckpointIndex index;
  ASSERT_TRUE(checkpoint::readIndex(path, &index).ok());
  const checkpoint::CheckpointIndex::File last = index.files.back();
  const auto store = [&] {
    std::string json;
    ASSERT_TRUE(checkpoint::printIndex(index, &json).ok());
    fillFile(path, json);
  };
  index.files.pop_back();
  store();
  refuses(" of 3000 elements of 'weight' of parameter 'embedding'", kDamaged);
  index.files.insert(index.files.end(), 2, last);
  store();
  refuses("come next", kDamaged);
  index.files = {last, {"../step", 1, ""}};
  store();
  refuses("names a file '../step'");
}

TEST_F(BadCheckpoint, WithoutWeightsIsDamaged) {
  checkpoint::CheckpointIndex index;
  ASSERT_TRUE(checkpoint::readIndex(at_ + "/index.json", &index).ok());
  index.arrays.clear();
  std::string json;
  ASSERT_TRUE(checkpoint::printIndex(index, &json).ok());
  fillFile(at_ + "/index.json", json);
  refuses("' is damaged: it names no weights", kDamaged);
}

// A file as long as it should be, with another name in its header.
TEST_F(BadCheckpoint, ForeignTensorIsNamed) {
  edit(shard(0), "weight/weight", "height/weight");  // whose offsets are told
  refuses(shard(0) + "' has a tensor 'weight/weight', which is no part of this model", kDamaged);
  edit(shard(0), "weight/weight", "height/weight");
  refuses(shard(0) + "' has a tensor 'height/weight', which is no part of this model", kDamaged);
}

// The path of `latest` fits the system's limit, that of what it names does not.
TEST_F(BadCheckpoint, TooLongAPathSaysSo) {
  std::string dir = dir_.path();
  while (dir.size() < 4085) dir += dir.size() % 2 == 0 ? "/." : "/";
  refuses("the path of the checkpoint is too long", Code::InvalidArgument, dir);
}

TEST_F(BadCheckpoint, EmptyFolderSaysSo) {
  const TemporaryFolder empty;
  refuses("there is no checkpoint in", Code::InvalidArgument, empty.path());
  refuses("there is no checkpoint in", Code::InvalidArgument, empty / "nowhere");
}

TEST_F(BadCheckpoint, OtherModelNamesTheParameter) {
  Training run = twoRanks();
  const auto with = [&](auto&& change) {
    run.model = smallModel();
    change(run.model);
    return run;
  };
  const Code wrong = Code::InvalidArgument;
  refuses("lacks parameter 'head'", wrong, "",
          with([](auto& m) { m.push_back({.name = "head", .elements = 5}); }));
  refuses("has a parameter 'bias'", wrong, "", with([](auto& m) { m.pop_back(); }));
  refuses("3000 elements of parameter 'embedding', this model 3001", wrong, "",
          with([](auto& m) { m[0].elements = m[4].elements = 3001; }));
  refuses("parameter 'frozen' frozen, this model trains", wrong, "",
          with([](auto& m) { m[2].frozen = false; }));
  refuses("parameter 'weight' trained, this model freezes it", wrong, "",
          with([](auto& m) { m[3].frozen = true; }));
  refuses("lacks parameter 'output'", wrong, "", with([](auto& m) { m[4].tiedTo = -1; }));
}

TEST_F(BadCheckpoint, OtherOptimizerSaysWhatItNeeds) {
  Training run = twoRanks();
  run.config.optimizer.kind = Optimizer::Sgd;
  run.config.optimizer.momentum = 0.9;
  refuses("has for each parameter weight, m, v, and this optimizer needs weight, momentum",
          Code::InvalidArgument, "", run);
}

TEST_F(BadCheckpoint, InsideAStepIsMisuse) {
  Training run = twoRanks();
  std::barrier bothTold(2);  // whoever goes on as a failed rank ends the other's call
  run.afterStep = [&](ShardedOptimizer& shard, int) -> Status {
    // One rank alone is enough for all to be told.
    MicroStepArgs args;
    args.boundary = false;
    if (shard.mesh().rank() == 1) {
      EXPECT_TRUE(shard.begin(args).ok());
    }
    for (const Status& status :
         {saveCheckpoint(shard, dir_.path(), ""), loadCheckpoint(shard, dir_.path(), nullptr)}) {
      EXPECT_EQ(status.code(), Code::InvalidUsage);
      EXPECT_NE(status.text().find("rank 1"), std::string::npos) << status.text();
    }
    bothTold.arrive_and_wait();
    return Status::error(Code::Aborted, "done");
  };
  Status status;
  trainAll(run, &status);
  EXPECT_EQ(status.text(), "done");
}

// A disk that takes no more: the last checkpoint stays, and all ranks hear of it.
class FullDisk : public BadCheckpoint {
 protected:
  static void failsToSave(const std::string& dir, const Training& run) {
    Status failed;
    trainAll(run, &failed);
    EXPECT_EQ(failed.code(), Code::SystemError) << failed.text();
    EXPECT_NE(failed.text().find(": cannot write '" + dir), std::string::npos) << failed.text();
    EXPECT_NE(failed.text().find("make room"), std::string::npos) << failed.text();
    EXPECT_FALSE(fs::exists(dir + "/step-00000003.tmp"));
    trainAll(loading(twoRanks(), 2, dir));
  }
};

TEST_F(FullDisk, LimitOfFilesLeavesTheLastGoodOne) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  Training run = savingAt(twoRanks(), 3, dir_.path());
  run.afterStep = [&, save = run.afterStep](ShardedOptimizer& shard, int steps) {
    const rlimit small{30000, limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const Status saved = save(shard, steps);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return saved;
  };
  failsToSave(dir_.path(), run);
  ::signal(SIGXFSZ, before);
}

TEST_F(FullDisk, NoSpaceLeavesTheLastGoodOne) {
  const std::string disk = dir_ / "disk";
  fs::create_directory(disk);
  // Room for one checkpoint, not for two.
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=200k") != 0)
    GTEST_SKIP() << "needs the right to mount a tmpfs";
  trainAll(savingAt(twoRanks(), 2, disk));
  failsToSave(disk, savingAt(twoRanks(), 3, disk));
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST_F(FullDisk, FolderThatCannotBeIsNamed) {
  fillFile(dir_ / "file", "");
  Status failed;
  trainAll(savingAt(twoRanks(), 2, dir_ / "file"), &failed);
  EXPECT_EQ(failed.code(), Code::SystemError);
  EXPECT_NE(failed.text().find(dir_ / "file"), std::string::npos) << failed.text();
}

}  // namespace
}  // namespace weft::test
