// SPDX-License-Identifier: Apache-2.0
// What writers leave that die between two steps of a save is gone with the next save.
#include "checkpoint/folder.h"

#include "folders.h"

namespace weft::test {
using namespace checkpoint;
namespace {

class CheckpointFolderOfTheDead : public testing::Test {
 protected:
  void SetUp() override {
    save(1);
    save(2);
  }

  static CheckpointIndex at(std::int64_t steps) {
    CheckpointIndex index;
    index.steps = steps;
    index.arrays = {"weight"};
    return index;
  }
  void save(std::int64_t steps) {
    ASSERT_TRUE(folder_.prepare(steps).ok());
    ASSERT_TRUE(folder_.commit(at(steps)).ok());
  }
  std::set<std::string> folders() const { return foldersIn(dir_.path()); }

  const TemporaryFolder dir_;
  const CheckpointFolder folder_{dir_.path()};
};

using Names = std::set<std::string>;

TEST_F(CheckpointFolderOfTheDead, BeforeLatestNamesTheNewOne) {
  for (int death = 0; death < 4; ++death) {
    const std::string latest = contentOf(dir_ / "latest");
    const TemporaryFolder old;
    fs::copy(dir_ / "step-00000001", old / "step-00000001");
    save(3);
    fillFile(dir_ / "latest", latest);
    fs::copy(old / "step-00000001", dir_ / "step-00000001");  // not yet removed
    EXPECT_EQ(folders(), (Names{"step-00000001", "step-00000002", "step-00000003"}));
  }
  std::string last;
  EXPECT_TRUE(folder_.latest(&last).ok());
  EXPECT_EQ(last, dir_ / "step-00000002");
}

TEST_F(CheckpointFolderOfTheDead, BeforeTheOldOnesAreRemoved) {
  for (std::int64_t steps = 3; steps < 7; ++steps) {
    const TemporaryFolder old;
    ASSERT_TRUE(folder_.prepare(steps).ok());
    fs::copy(dir_.path(), old.path(), fs::copy_options::recursive);
    ASSERT_TRUE(folder_.commit(at(steps)).ok());
    for (const auto& entry : fs::directory_iterator(old.path()))
      if (entry.is_directory() && entry.path().extension() != ".tmp")
        fs::copy(entry, dir_ / entry.path().filename(),
                 fs::copy_options::recursive | fs::copy_options::skip_existing);
    EXPECT_EQ(folders().size(), 3u) << steps;
  }
  save(7);
  EXPECT_EQ(folders(), (Names{"step-00000006", "step-00000007"}));
}

TEST_F(CheckpointFolderOfTheDead, WhatLiesAsideGoesWithTheNextSave) {
  ASSERT_TRUE(folder_.prepare(3).ok());  // and never committed
  save(4);
  EXPECT_EQ(folders(), (Names{"step-00000002", "step-00000004"}));
}

TEST_F(CheckpointFolderOfTheDead, WhereTheLastIsMovedAwayTheNewestCounts) {
  const auto latest = [&] {
    std::string last;
    EXPECT_TRUE(folder_.latest(&last).ok());
    return last;
  };
  fs::rename(dir_ / "step-00000002", dir_ / "step-00000002.damaged");
  EXPECT_EQ(latest(), dir_ / "step-00000001");
  save(2);
  EXPECT_EQ(folders(), (Names{"step-00000001", "step-00000002", "step-00000002.damaged"}));
  for (const char* lost : {"", "nonsense", "step-00000009"}) {
    fillFile(dir_ / "latest", lost);
    EXPECT_EQ(latest(), dir_ / "step-00000002") << lost;
  }
}

TEST_F(CheckpointFolderOfTheDead, NothingGoesWhileTheLastIsNotToBeRead) {
  fillFile(dir_ / "step-00000002/index.json", "{");
  ASSERT_TRUE(folder_.prepare(3).ok());
  EXPECT_EQ(folders(), (Names{"step-00000001", "step-00000002", "step-00000003.tmp"}));
}

}  // namespace
}  // namespace weft::test
