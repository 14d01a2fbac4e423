// SPDX-License-Identifier: Apache-2.0
// The calibration and the choices made by it, through the public API.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <vector>

#include "../temporary_folder.h"
#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

constexpr std::size_t kText = 2048;
using Text = std::array<char, kText>;

Text explained(Steps& steps, weftComm_t comm, const char* collective, std::size_t count) {
  Text text{};
  steps.ok(
      weftCommExplain(comm, collective, count, weftFloat, weftSum, nullptr, text.data(), kText),
      "explain");
  return text;
}

// What every rank says alike of a call: the first line tells of the rank's own part in it.
Text reason(Steps& steps, weftComm_t comm, const char* collective, std::size_t count) {
  const std::string whole = explained(steps, comm, collective, count).data();
  Text text{};
  const std::size_t from = collective == nullptr ? 0 : whole.find('\n');
  steps.expect(from != std::string::npos, whole);
  if (from < whole.size()) whole.copy(text.data(), kText - 1, from);
  return text;
}

// All ranks count with the same numbers and give the same reasons.
void expectAgreement(Steps& steps, const Rank& rank) {
  for (const char* collective : {static_cast<const char*>(nullptr), "all_reduce", "all_gather",
                                 "reduce_scatter", "broadcast", "alltoall", "gather"}) {
    for (const std::size_t count : {1u, 100u, 1000u, 5000u, 20000u, 100000u, 1000000u}) {
      const Text mine = reason(steps, rank.comm, collective, count);
      std::vector<Text> all(static_cast<std::size_t>(rank.ranks));
      steps.ok(weftAllGather(mine.data(), all.data(), kText, weftInt8, rank.comm, nullptr, nullptr),
               "all-gather");
      for (const Text& other : all)
        steps.expect(other == mine, std::string(mine.data()) + "\nbut elsewhere\n" + other.data());
    }
  }
}

// Calls on both sides of the cut-overs go through, which they would not if ranks chose differently.
void expectCalls(Steps& steps, const Rank& rank) {
  std::vector<float> in(100000, 1), out(300000);
  for (std::size_t count = 1; count <= in.size(); count = count * 3 / 2 + 1) {
    steps.ok(weftAllReduce(in.data(), out.data(), count, weftFloat, weftSum, rank.comm, nullptr,
                           nullptr),
             "all-reduce");
    steps.expect(out[count - 1] == static_cast<float>(rank.ranks), "a wrong sum");
    steps.ok(weftAllGather(in.data(), out.data(), count, weftFloat, rank.comm, nullptr, nullptr),
             "all-gather");
  }
}

// Those that fork come first: children know what their parent has measured.
class Tuning : public ::testing::Test {
 protected:
  std::string fileOf(int rank) const { return folder_ / ("machine-" + std::to_string(rank)); }

  test::TemporaryFolder folder_;
};

// Each process has measured by itself, and so has numbers and a file of its own.
TEST_F(Tuning, RanksThatKnowDifferentNumbersTakeThoseOfRankZero) {
  constexpr int kRanks = 3;
  const IdCourier courier(kRanks);
  const auto texts = forkRanks(kRanks, [&](int number) {
    setenv("WEFT_TUNE_FILE", fileOf(number).c_str(), 1);
    Steps steps;
    Rank rank{number, kRanks, nullptr};
    weftComm_t alone = nullptr;
    weftUniqueId id{};
    steps.ok(weftCommInitAll(&alone, 1, nullptr), "alone");
    steps.expect(courier.exchange(number, &id).empty(), "no id");
    steps.ok(weftCommInitRank(&rank.comm, kRanks, id, number), "join");
    if (steps.failed().empty()) expectAgreement(steps, rank);
    if (steps.failed().empty()) expectCalls(steps, rank);
    steps.ok(weftCommDestroy(rank.comm), "destroy");
    steps.ok(weftCommDestroy(alone), "destroy");
    return steps.failed();
  });
  EXPECT_EQ(failuresIn(texts), "");
}

TEST_F(Tuning, ABadFileOrPlaceDoesNoHarm) {
  std::filesystem::create_directory(fileOf(0));
  ASSERT_EQ(mkfifo(fileOf(1).c_str(), 0600), 0);
  for (const std::string& place :
       {fileOf(0), fileOf(1), std::string("/proc/x/y"), std::string("off")}) {
    const auto texts = forkRanks(1, [&](int) {
      setenv("WEFT_TUNE_FILE", place.c_str(), 1);
      Steps steps;
      weftComm_t comm = nullptr;
      if (!steps.ok(weftCommInitAll(&comm, 1, nullptr), place)) return steps.failed();
      const std::string machine = explained(steps, comm, nullptr, 0).data();
      steps.expect(machine.find("a measurement") != std::string::npos, machine);
      steps.ok(weftCommDestroy(comm), "destroy");
      return steps.failed();
    });
    EXPECT_EQ(failuresIn(texts), "") << place;
  }
}

TEST_F(Tuning, ThreadsAgree) {
  EXPECT_EQ(failures({.kind = Kind::Threads, .ranks = 4},
                     [](const Rank& rank) {
                       Steps steps;
                       expectAgreement(steps, rank);
                       return steps.failed();
                     }),
            "");
}

TEST_F(Tuning, ExplanationsNameWhatDecides) {
  weftComm_t comm = nullptr;
  ASSERT_EQ(weftCommInitAll(&comm, 1, nullptr), weftSuccess);
  Text text{};
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  opts.algorithm = "ring";
  const auto explain = [&](const weftOpts_t* with) {
    EXPECT_EQ(
        weftCommExplain(comm, "all_reduce", 100, weftFloat, weftSum, with, text.data(), kText),
        weftSuccess);
    return std::string(text.data());
  };
  EXPECT_NE(explain(nullptr).find("the model decides"), std::string::npos);
  EXPECT_NE(explain(&opts).find("ring"), std::string::npos);
  EXPECT_NE(explain(&opts).find("the call's algorithm decides"), std::string::npos);
  EXPECT_EQ(weftCommExplain(comm, nullptr, 0, weftFloat, weftSum, nullptr, text.data(), 9),
            weftSuccess);
  EXPECT_STREQ(text.data(), "machine:") << "cut to the length";
  EXPECT_EQ(weftCommDestroy(comm), weftSuccess);
}

}  // namespace
}  // namespace weft::testing
