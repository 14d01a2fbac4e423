// SPDX-License-Identifier: Apache-2.0
#include "perf/common/command_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft::tools {
namespace {

struct Given {
  std::string folder, check = "off";
  double share = 0;
};

// What words are refused with; empty: they are taken.
std::string refusal(std::vector<const char*> words, Given* given) {
  CLI::App app;
  app.add_option("-s,--save", given->folder);
  app.add_option("-c,--check", given->check)->expected(0, 1);
  app.add_option("--share", given->share)->check(within(0, 0.5));
  addVersion(app, "weft-test");
  try {
    words.insert(words.begin(), "weft-test");
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(CommandLine, AVariableThatIsNotSetIsNoOptionThatWasLeftOut) {
  Given given;
  const std::string empty = "--save: is empty; give a value, or leave it out";
  EXPECT_EQ(refusal({"--save", ""}, &given), empty);
  EXPECT_EQ(refusal({"-s", "", "--check"}, &given), empty);
  EXPECT_NE(refusal({"--save="}, &given), "");
  EXPECT_EQ(refusal({"--save", "here"}, &given), "");
  EXPECT_EQ(given.folder, "here");
  EXPECT_EQ(refusal({"--check"}, &given), "");
  EXPECT_EQ(refusal({}, &given), "");
}

TEST(CommandLine, NanIsInNoRange) {
  Given given;
  EXPECT_EQ(refusal({"--share", "nan"}, &given), "--share: 'nan' is no number");
  EXPECT_EQ(refusal({"--share", "0.25"}, &given), "");
  EXPECT_EQ(given.share, 0.25);
  for (const char* word : {"0.6", "-1", "much", "inf"})
    EXPECT_NE(refusal({"--share", word}, &given), "") << word;
}

TEST(CommandLine, WordsThatEndAProgramEndItAsAllToolsDo) {
  const auto endOf = [](const char* word) {
    CLI::App app;
    addVersion(app, "weft-test");
    const char* const words[] = {"weft-test", word};
    return endByWords(app, word == nullptr ? 1 : 2, words);
  };
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(endOf("--help"), 0);
  EXPECT_EQ(endOf("--version"), 0);
  EXPECT_EQ(endOf("--nonsense"), 64);
  EXPECT_EQ(endOf(nullptr), std::nullopt);
  testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace weft::tools
