// SPDX-License-Identifier: Apache-2.0
#include "tools/test/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "perf/common/exit_code.h"

namespace weft::test {
using namespace test;
namespace {

using Words = std::vector<const char*>;

std::variant<TestOptions, int> parse(Words words) {
  words.insert(words.begin(), "weft-test");
  return parseOptions(static_cast<int>(words.size()), const_cast<char**>(words.data()));
}

TestOptions parsedWell(const Words& words) {
  std::variant<TestOptions, int> parsed = parse(words);
  if (TestOptions* options = std::get_if<TestOptions>(&parsed)) return std::move(*options);
  ADD_FAILURE() << "refused with " << std::get<int>(parsed);
  return {};
}

std::vector<std::string> namesOf(const TestOptions& options) {
  std::vector<std::string> names;
  for (const Operation* operation : options.operations) names.emplace_back(operation->name);
  return names;
}

TEST(OptionsOf, NccomTest) {
  const TestOptions options =
      parsedWell({"allr", "-r", "4", "-b", "8", "-e", "256M", "-f", "4", "-n", "21", "-w", "6",
                  "-d", "fp32", "--check", "random", "--seed", "9"});
  EXPECT_EQ(namesOf(options), std::vector<std::string>{"all_reduce"});
  EXPECT_EQ(options.ranks, 4);
  const perf::Options& measure = options.measure;
  EXPECT_EQ(measure.minBytes, 8u);
  EXPECT_EQ(measure.maxBytes, 256u << 20);
  EXPECT_EQ(measure.factor, 4u);
  EXPECT_EQ(measure.iterations, 21);
  EXPECT_EQ(measure.warmup, 6);
  EXPECT_EQ(measure.types.front().type, weftFloat32);
  EXPECT_EQ(measure.checks, 1);
  EXPECT_FALSE(measure.checkOnes);
  EXPECT_EQ(measure.seed, 9u);
  EXPECT_TRUE(measure.onlySingle);
  EXPECT_FALSE(measure.inPlace);
}

TEST(OptionsOf, DefaultsAreNccomTests) {
  const TestOptions options = parsedWell({"-r", "2", "redsct"});
  EXPECT_EQ(options.measure.minBytes, 32u << 20);
  EXPECT_EQ(options.measure.maxBytes, 32u << 20);
  EXPECT_EQ(options.measure.iterations, 20);
  EXPECT_EQ(options.measure.warmup, 5);
  EXPECT_EQ(options.measure.types.front().type, weftUint8);
  EXPECT_EQ(options.measure.checks, 0);
  EXPECT_EQ(options.stats, std::vector<std::string>{"avg"});
}

TEST(OptionsOf, ListsAndOptionalValuesEndBeforeAnOperation) {
  EXPECT_EQ(namesOf(parsedWell({"--check", "allg", "-r", "2", "bcast", "permute"})),
            (std::vector<std::string>{"all_gather", "broadcast", "permute"}));
  const TestOptions stats = parsedWell({"-r", "2", "--stats", "avg", "p25", "p99.9", "alltoallv"});
  EXPECT_EQ(stats.stats, (std::vector<std::string>{"avg", "p25", "p99.9"}));
  EXPECT_EQ(namesOf(stats), std::vector<std::string>{"alltoallv"});
  const TestOptions hosts = parsedWell({"-s", "a", "b", "-c", "all_ones", "allr", "-r", "2"});
  EXPECT_EQ(hosts.hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(hosts.measure.checkOnes);
  EXPECT_EQ(parsedWell({"allr", "-r", "2", "-c"}).measure.checks, 1);
}

TEST(OptionsOf, SizesTakeLettersAndB) {
  for (const char* text : {"65536", "64k", "64K", "64kb", "64KB", "65536b"}) {
    EXPECT_EQ(parsedWell({"allr", "-r", "2", "-b", text}).measure.minBytes, 65536u) << text;
  }
  EXPECT_EQ(parsedWell({"allr", "-r", "2", "-e", "1gb", "-f", "2kb"}).measure.factor, 2048u);
}

TEST(OptionsOf, AStepIsATenthOfTheWayUnlessGiven) {
  EXPECT_EQ(parsedWell({"allr", "-r", "2", "-b", "10", "-e", "110"}).measure.stepBytes, 10u);
  EXPECT_EQ(parsedWell({"allr", "-r", "2", "-b", "10", "-e", "12"}).measure.stepBytes, 1u);
  EXPECT_EQ(parsedWell({"allr", "-r", "2", "-b", "8", "-e", "16", "-i", "4"}).measure.stepBytes,
            4u);
}

TEST(OptionsOf, RoundsMultiplyTheCalls) {
  const TestOptions options =
      parsedWell({"allr", "-r", "2", "-n", "15", "-w", "5", "-I", "10", "-W", "5"});
  EXPECT_EQ(options.measure.iterations, 150);
  EXPECT_EQ(options.measure.warmup, 105);
}

TEST(OptionsOf, GroupsAndPairs) {
  EXPECT_EQ(parsedWell({"allr", "-r", "4", "--custom-replica-group", "[[0,3],[1,2]]"}).groups,
            (Groups{{0, 3}, {1, 2}}));
  EXPECT_EQ(parsedWell({"allr", "-r", "4", "--data-parallel-dimension", "2"}).groups,
            (Groups{{0, 2}, {1, 3}}));
  const TestOptions options = parsedWell(
      {"permute", "-r", "3", "--custom-src-target-pairs", R"({"src_target_pairs": [[2, 0]]})"});
  ASSERT_EQ(options.pairs.size(), 1u);
  EXPECT_EQ(options.pairs[0].source, 2);
  EXPECT_EQ(options.pairs[0].target, 0);
}

TEST(OptionsOf, HostsComeFromAFileToo) {
  const std::string path = "/tmp/weft-hosts-" + std::to_string(getpid());
  std::ofstream(path) << "node1\nnode2\n";
  EXPECT_EQ(parsedWell({"allr", "-r", "2", "--hosts-file", path.c_str()}).hosts,
            (std::vector<std::string>{"node1", "node2"}));
  unlink(path.c_str());
}

TEST(OptionsOf, BadInputIsAUsageError) {
  const std::vector<Words> bad = {
      {},
      {"allr"},
      {"-r", "2"},
      {"allx", "-r", "2"},
      {"allr", "allx", "-r", "2"},
      {"allr", "-r", "0"},
      {"allr", "-r", "many"},
      {"allr", "-r", "2", "-b", "4M", "-e", "1M"},
      {"allr", "-r", "2", "-b", "64M"},
      {"allr", "-r", "2", "-b", "4q"},
      {"allr", "-r", "2", "-b", "b"},
      {"allr", "-r", "2", "-b", "-8"},
      {"allr", "-r", "2", "-i", "0"},
      {"allr", "-r", "2", "-f", "1"},
      {"allr", "-r", "2", "-n", "0"},
      {"allr", "-r", "2", "-w", "-1"},
      {"allr", "-r", "2", "-d", "int16"},
      {"allr", "-r", "2", "-d", "float"},
      {"allr", "-r", "2", "-c", "zeros"},
      {"allr", "-r", "2", "--seed", "now"},
      {"allr", "-r", "2", "-t", "p101"},
      {"allr", "-r", "2", "-t", "median"},
      {"allr", "-r", "2", "-N", "0"},
      {"allr", "-r", "2", "--hosts-file", "/nowhere/hosts"},
      {"allr", "-r", "2", "--custom-replica-group", "/nowhere/groups.json"},
      {"allr", "-r", "2", "--custom-replica-group", "[[0,1]]", "--data-parallel-dimension", "2"},
      {"allr", "-r", "3", "--data-parallel-dimension", "2"},
      {"permute", "-r", "2", "--custom-src-target-pairs", "[[0, 2]]"},
      {"allr", "-r", "2", "--sb2sb"},
      {"allr", "-r", "2", "--slurm-job-id", "5"},
      {"allr", "-r", "2", "--data-collector-port", "60006"},
      {"alltoallv", "-r", "2", "--alltoallv-metadata", "x.json"},
      {"allr", "-r", "2", "--no-such-flag"},
  };
  for (const Words& words : bad) {
    std::string line;
    for (const char* word : words) line.append(" ").append(word);
    testing::internal::CaptureStderr();
    const std::variant<TestOptions, int> parsed = parse(words);
    EXPECT_NE(testing::internal::GetCapturedStderr(), "") << line;
    ASSERT_TRUE(std::holds_alternative<int>(parsed)) << line;
    EXPECT_EQ(std::get<int>(parsed), tools::kExitUsage) << line;
  }
}

}  // namespace
}  // namespace weft::test
