// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/options.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "perf/common/exit_code.h"
#include "perf/weft-perf/team.h"

namespace weft::perf {
namespace {

std::variant<Options, int> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "weft-perf");
  std::vector<char*> argv;
  for (const char* word : words) argv.push_back(const_cast<char*>(word));
  return parseOptions(static_cast<int>(argv.size()), argv.data());
}

TEST(OptionsOf, Nccl) {
  const auto parsed =
      parse({"all_reduce", "-b", "8",   "-e", "256M", "-f", "4", "-g", "2",          "-t",
             "3",          "-n", "7",   "-w", "0",    "-c", "2", "-d", "all",        "-o",
             "max",        "-r", "all", "-a", "3",    "-z", "0", "-I", "--maxbytes", "1K"});
  ASSERT_TRUE(std::holds_alternative<Options>(parsed));
  const Options& options = std::get<Options>(parsed);
  EXPECT_EQ(options.minBytes, 8u);
  EXPECT_EQ(options.maxBytes, 1024u);
  EXPECT_EQ(options.factor, 4u);
  EXPECT_EQ(options.ranksPerProcess(), 6);
  EXPECT_EQ(options.iterations, 7);
  EXPECT_EQ(options.warmup, 0);
  EXPECT_FALSE(options.settles);
  EXPECT_EQ(options.checks, 2);
  EXPECT_EQ(options.types.size(), 10u);
  ASSERT_EQ(options.ops.size(), 1u);
  EXPECT_EQ(options.ops[0].op, Op::Max);
  EXPECT_EQ(options.root, Options::kAllRoots);
  EXPECT_EQ(options.average, Average::Max);
  EXPECT_TRUE(options.perIteration);
}

TEST(OptionsOf, WhatIsOffMayBeSwitchedOff) {
  const auto parsed = parse({"all_reduce", "-G", "0", "-y", "0", "-D", "0", "-x", "0"});
  EXPECT_TRUE(std::holds_alternative<Options>(parsed));
}

TEST(OptionsOf, DefaultsAreNcclTests) {
  const auto parsed = parse({"all_reduce", "-K", "3", "-u", "2"});
  ASSERT_TRUE(std::holds_alternative<Options>(parsed));
  const Options& options = std::get<Options>(parsed);
  EXPECT_EQ(options.warmup, 1);
  EXPECT_TRUE(options.settles);
  EXPECT_EQ(options.iterations, 20);
  EXPECT_EQ(options.skippedIterations, 3);
  EXPECT_EQ(options.unalign, 2u);
}

TEST(OptionsOf, ProgramNamesMayBeLinks) {
  const char* words[] = {"/usr/bin/broadcast_perf", "-g", "2", nullptr};
  const auto parsed = parseOptions(3, const_cast<char**>(words));
  ASSERT_TRUE(std::holds_alternative<Options>(parsed));
  EXPECT_STREQ(std::get<Options>(parsed).collective->name, "broadcast");
}

TEST(OptionsOf, BadInputIsAUsageError) {
  const std::vector<std::vector<const char*>> bad = {
      {},
      {"all_reduce", "-G", "1"},
      {"all_reduce", "-D", "1"},
      {"all_reduce", "-V", "1"},
      {"all_reduce", "-x", "1"},
      {"all_reduce", "-y", "1"},
      {"all_reduce", "-z", "1"},
      {"all_reduce", "-R", "2"},
      {"all_reduce", "-b", "4K", "-e", "1K"},
      {"all_reduce", "-b", "8", "-e", "1K", "-i", "0"},
      {"all_reduce", "-f", "-2"},
      {"all_reduce", "-f", "99999999999999999999"},
      {"all_reduce", "-J", ""},
      {"all_reduce", "-g", "0"},
      {"all_reduce", "-n", "0"},
      {"all_reduce", "-n", "5", "-K", "5"},
      {"all_reduce", "-d", "float8"},
      {"all_reduce", "-o", "band"},
      {"all_reduce", "-o", "bxor", "-d", "bf16"},
      {"all_reduce", "-o", "xor"},
      {"all_reduce", "-r", "-1"},
      {"all_reduce", "-r", "first"},
      {"all_reduce", "--no-such-flag"},
      {"allreduce"},
      {"all_reduce", "all_gather"},
  };
  for (const auto& words : bad) {
    testing::internal::CaptureStderr();
    const auto parsed = parse(words);
    const std::string text = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(std::holds_alternative<int>(parsed)) << testing::PrintToString(words);
    EXPECT_EQ(std::get<int>(parsed), tools::kExitUsage);
    EXPECT_FALSE(text.empty());
  }
}

TEST(SplitColor, Operations) {
  EXPECT_EQ(splitColor("MOD 2", 5), 1);
  EXPECT_EQ(splitColor("DIV 4", 5), 1);
  EXPECT_EQ(splitColor("&0x3", 6), 2);
  EXPECT_EQ(splitColor("OR 0b100", 1), 5);
  for (const char* bad : {"MOD", "MOD 0", "XOR 1", "2", "MOD 2x"}) {
    EXPECT_THROW(splitColor(bad, 1), std::invalid_argument) << bad;
  }
}

}  // namespace
}  // namespace weft::perf
