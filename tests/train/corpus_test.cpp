// SPDX-License-Identifier: Apache-2.0
#include "tools/train/corpus.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "tools/train/failure.h"

namespace weft::train {
namespace {

using test::TemporaryFolder;

std::string text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

TEST(Corpus, ReadsAnyBytesOfAFile) {
  const TemporaryFolder folder;
  const std::string content(
      "a\0\xff\r\n\x1a"
      "b",
      7);
  EXPECT_EQ(text(readCorpus(folder.write("file", content))), content);
}

TEST(Corpus, JoinsTheFilesOfAFolderInOrderOfTheirPaths) {
  const TemporaryFolder folder;
  folder.write("b", "2");
  folder.write("a/z", "1");
  folder.write("c/a", "3");
  std::filesystem::create_symlink("b", folder / "link");
  EXPECT_EQ(text(readCorpus(folder.path())), "123");
}

TEST(Corpus, NamesWhatCannotBeRead) {
  try {
    readCorpus("/nowhere/to/be/found");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "cannot read /nowhere/to/be/found: No such file or directory");
    EXPECT_EQ(failure.code(), 65);
  }
}

TEST(Corpus, TokensOfMegatronAreNotTakenForText) {
  const TemporaryFolder folder;
  const std::string magic("MMIDIDX\0\0", 9);
  folder.write("data/a.bin", "tokens");
  EXPECT_EQ(text(readCorpus(folder / "data/a.bin")), "tokens") << "any bytes";
  folder.write("data/a.idx", magic);
  for (const char* name : {"data/a.bin", "data/a.idx", "data"}) {
    try {
      readCorpus(folder / name);
      ADD_FAILURE() << name;
    } catch (const Failure& failure) {
      EXPECT_NE(std::string(failure.what()).find("tokens of a Megatron dataset"),
                std::string::npos);
      EXPECT_EQ(failure.code(), 65);
    }
  }
}

TEST(Corpus, SaysWhereItIsNotUtf8) {
  const TemporaryFolder folder;
  folder.write("a", "\xc3\xa9");
  const std::string bad = folder.write("b", "one\ntwo\nna\xefve");
  try {
    readCorpus(folder.path(), TextIs::kUtf8);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.what(), bad +
                                  ", line 3, byte 10: 0xef is not UTF-8 there; iconv -t UTF-8 "
                                  "converts other encodings");
    EXPECT_EQ(failure.code(), 65);
  }
  EXPECT_EQ(text(readCorpus(folder / "a", TextIs::kUtf8)), "\xc3\xa9");
}

TEST(Corpus, WhatHasNoEndIsRefused) {
  EXPECT_THROW(readCorpus("/dev/zero"), Failure);
  EXPECT_THROW(requireFile("/dev/zero"), Failure);
}

}  // namespace
}  // namespace weft::train
