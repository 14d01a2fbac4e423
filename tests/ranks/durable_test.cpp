// SPDX-License-Identifier: Apache-2.0
// Files as a disk sees them: what a save or an export has said is there survives a power cut, its
// folders as well, nothing is given its name before it is whole, and no file that weft makes is
// written through a link that somebody puts in its place.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "shard_training.h"
#include "steps.h"
#include "watched_files.h"
#include "world.h"

namespace weft::testing {
namespace {

namespace fs = std::filesystem;

class Durable : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::canonical(::testing::TempDir()).string() + "/weft_durable_" +
              std::to_string(::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(precious()) << "precious";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string precious() const { return folder_ + "/precious"; }

  // Two checkpoints in folders that are not there yet, and an export, as far as they come.
  std::string saveAll(const std::string& name) const {
    const std::string below = folder_ + "/" + name, dir = below + "/checkpoints/of/a/model";
    const std::string file = below + "/model.safetensors";
    return failures({Kind::Threads, 2}, [&](const Rank& r) {
      const std::vector<weftParam_t> model = smallModel();
      const weftShardConfig_t config = shardConfig(weftFloat32);
      Steps steps;
      weftShard_t shard = nullptr;
      const auto save = [&] {
        const weftResult_t began = weftShardSave(shard, dir.c_str(), "{}", 1);
        return began == weftSuccess ? weftShardSaveWait(shard) : began;
      };
      steps.ok(weftShardCreate(&shard, r.comm, model.data(), model.size(), &config), "create");
      steps.ok(save(), "save");
      steps.ok(save(), "save again");
      steps.ok(weftShardExport(shard, file.c_str(), 1), "export");
      weftShardDestroy(shard);
      return steps.failed();
    });
  }

  std::string folder_;
};

TEST_F(Durable, IsWhatWasSaved) {
  watchFiles(folder_.c_str(), 0, nullptr);
  EXPECT_EQ(saveAll("all"), "");
  const char* const lost = whatIsNotDurable();
  EXPECT_EQ(lost, nullptr) << lost;
  EXPECT_GT(filesMade(), 4);
}

TEST_F(Durable, NoLinkIsFollowed) {
  for (int n = 1;; ++n) {
    const std::string target = precious();
    watchFiles(folder_.c_str(), n, target.c_str());
    (void)saveAll(std::to_string(n));
    if (filesMade() < n) break;
    std::string content;
    std::ifstream(target) >> content;
    ASSERT_EQ(content, "precious") << "file " << n;
  }
}

}  // namespace
}  // namespace weft::testing
