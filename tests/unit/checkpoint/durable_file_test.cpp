// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/durable_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/temporary_folder.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string contentOf(const std::string& path) {
  std::string content;
  EXPECT_TRUE(readFile(path, 1000, &content).ok()) << path;
  return content;
}

TEST(DurableFile, ALinkInItsPlaceIsNotFollowed) {
  const test::TemporaryFolder folder;
  const std::string victim = folder / "victim", file = folder / "file";
  ASSERT_TRUE(writeFile(victim, "precious").ok());
  fs::create_symlink(victim, file + ".tmp");
  ASSERT_TRUE(replaceFile(file, "new").ok());
  EXPECT_EQ(contentOf(victim), "precious");
  EXPECT_EQ(contentOf(file), "new");
}

TEST(DurableFile, FoldersAreMadeWhereTheyAreNot) {
  const test::TemporaryFolder folder;
  const fs::path top = folder / "top";
  for (int twice = 0; twice < 2; ++twice) EXPECT_TRUE(makeFolders((top / "a//b/c/").string()).ok());
  EXPECT_TRUE(fs::is_directory(top / "a/b/c"));
  ASSERT_TRUE(writeFile(top / "a/file", "x").ok());
  for (const char* bad : {"a/file", "a/file/d"}) {
    const Status status = makeFolders((top / bad).string());
    EXPECT_EQ(status.code(), Code::SystemError) << bad;
    EXPECT_NE(status.text().find("cannot make folder"), std::string::npos) << status.text();
  }
}

TEST(DurableFile, WhatCannotBeReadOrReplacedIsNamed) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(makeFolders(folder / "taken/inside").ok());
  const std::string file = folder / "file";
  ASSERT_TRUE(writeFile(file, "12345678").ok());
  std::string content;
  EXPECT_EQ(readFile(folder.path(), 100, &content).text(), "'" + folder.path() + "' is not a file");
  EXPECT_EQ(readFile(file, 7, &content).text(), "'" + file + "' is too long: 8 bytes");
  const Status taken = replaceFile(folder / "taken", "x");
  EXPECT_NE(taken.text().find("cannot replace"), std::string::npos) << taken.text();
  InputFile open;
  ASSERT_TRUE(InputFile::open(file, &open).ok());
  fs::resize_file(file, 3);
  char bytes[8];
  const Status cut = open.read(0, bytes, sizeof(bytes));
  EXPECT_EQ(cut.text(), "'" + file + "' ends at byte 3, earlier than it did");
}

}  // namespace
}  // namespace weft::checkpoint
