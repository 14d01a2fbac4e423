// SPDX-License-Identifier: Apache-2.0
#include "tools/train/files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/temporary_folder.h"
#include "tools/train/attention_memory.h"
#include "tools/train/failure.h"

namespace weft::train {
namespace {

using test::TemporaryFolder;

// How it is refused, or 0.
int refusalOf(const Options& options) {
  try {
    checkFiles(options);
  } catch (const Failure& failure) {
    return failure.code();
  }
  return 0;
}

TEST(Files, WhatCannotBeWrittenIsFoundBefore) {
  const TemporaryFolder folder;
  for (std::string Options::*file : {&Options::csv, &Options::json, &Options::svg, &Options::report,
                                     &Options::exportTo, &Options::save}) {
    Options options;
    options.*file = folder / "new";
    EXPECT_EQ(refusalOf(options), 0);
    options.*file = folder.write("file", "") + "/below";
    EXPECT_EQ(refusalOf(options), 73);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "checkpoint"));
}

TEST(Files, OfAllStepsAreNamedAsGiven) {
  Options options;
  options.csv = "c.csv";  // of each step
  EXPECT_EQ(filesOfSteps(options), "");
  options.json = "a.json";
  options.report = "b.html";
  EXPECT_EQ(filesOfSteps(options), "--json a.json, --report b.html");
}

TEST(Files, ReportsMayLieInTheFolderOfSaveWhichIsMade) {
  const TemporaryFolder folder;
  Options options;
  options.save = options.resume = folder / "job";
  options.csv = options.json = options.exportTo = folder / "job/file";
  EXPECT_EQ(refusalOf(options), 0);
}

TEST(Files, AnExportNeedsARegularFile) {
  Options options;
  options.exportTo = "-";
  EXPECT_EQ(refusalOf(options), 64);
}

TEST(Files, ResumeNeedsACheckpointUnlessItIsWhereTheRunSaves) {
  const TemporaryFolder folder;
  Options options;
  options.resume = folder / "typo";
  EXPECT_EQ(refusalOf(options), 64);
  options.resume = folder.path();
  EXPECT_EQ(refusalOf(options), 64) << "no checkpoint";
  options.save = folder.path() + "/";
  EXPECT_EQ(refusalOf(options), 0) << "its first start";
  options.save.clear();
  folder.write("latest", "step-1");
  EXPECT_EQ(refusalOf(options), 0);
}

TEST(Files, WhatATrainingStartsFromIsThereUntilItHasItsOwn) {
  const TemporaryFolder folder, own;
  Options options;
  options.startFrom = folder.path();
  EXPECT_EQ(refusalOf(options), 64);
  options.resume = options.save = own.path();
  EXPECT_EQ(refusalOf(options), 64);
  own.write("latest", "step-1");
  EXPECT_EQ(refusalOf(options), 0);
  folder.write("latest", "step-1");
  options.resume.clear();
  EXPECT_EQ(refusalOf(options), 0);
}

TEST(AttentionMemory, ThatNoHostHasIsRefused) {
  Options options;
  options.length = 65536;
  options.batch = 8;
  options.shape.heads = 4;
  EXPECT_EQ(attentionBytes(options), 8.0 * 4 * 65536 * 65536 * 4);
  EXPECT_NO_THROW(checkAttentionFits(options, 1e12));
  EXPECT_THROW(checkAttentionFits(options, 16e9), Failure);
  EXPECT_GT(bytesOfThisHost(), 0);
}

}  // namespace
}  // namespace weft::train
