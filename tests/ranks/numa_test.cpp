// SPDX-License-Identifier: Apache-2.0
// Ranks on cores of different NUMA nodes: each one's windows have pages of its own node alone.
#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "world.h"

namespace weft::testing {
namespace {

std::string firstWord(const std::string& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

// The first core of a node; -1: there is no such node, or it has none.
int coreOf(int node) {
  const std::string list =
      firstWord("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
  return list.empty() ? -1 : std::stoi(list);
}

bool pinTo(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(core), &one);
  return ::sched_setaffinity(0, sizeof(one), &one) == 0;
}

// What this process has placed on a node: pages there, and elsewhere.
struct Placed {
  long here = 0, elsewhere = 0;
};
Placed placedOn(int node) {
  Placed placed;
  std::ifstream maps("/proc/self/numa_maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" prefer:" + std::to_string(node) + " ") == std::string::npos) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;)
      if (word.size() > 2 && word[0] == 'N' && word.find('=') != std::string::npos)
        (word.starts_with("N" + std::to_string(node) + "=") ? placed.here : placed.elsewhere) +=
            std::stol(word.substr(word.find('=') + 1));
  }
  return placed;
}

// Staged sums, which use all of the arenas.
std::string callAround(const Rank& r) {
  weftOpts_t options = WEFT_OPTS_INITIALIZER;
  options.algorithm = "mesh";
  for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{1} << 20}) {
    std::vector<float> data(count, 1);
    if (const auto ended = weftAllReduce(data.data(), data.data(), count, weftFloat, weftSum,
                                         r.comm, nullptr, &options);
        ended != weftSuccess)
      return outcome(ended, r.comm);
    if (data[count - 1] != 2) return "the sum is wrong";
  }
  return "";
}

std::string explained(weftComm_t comm, const char* collective) {
  std::vector<char> text(8192);
  return weftCommExplain(comm, collective, 1 << 20, weftFloat, weftSum, nullptr, text.data(),
                         text.size()) == weftSuccess
             ? text.data()
             : "";
}

// What a rank is told of memory on the other node.
std::string explainsFarMemory(const Rank& r) {
  const std::string line = "\nfar memory: of other NUMA nodes rank " + std::to_string(r.rank) +
                           " (on " + std::to_string(r.rank) + ") writes ";
  if (const std::string all = explained(r.comm, "all_gather"); all.find(line) == std::string::npos)
    return all;
  if (const std::string all = explained(r.comm, nullptr); all.find("far_put ") == std::string::npos)
    return all;
  return "";
}

// Processes, half of them on a core of each of two nodes; what went wrong.
std::string onTwoNodes(int ranks, const Body& body) {
  const World world{Kind::Processes, ranks, "shm"};
  const IdCourier courier(ranks);
  return failuresIn(forkRanks(ranks, [&](int rank) -> std::string {
    Rank r{rank, ranks, nullptr};
    weftUniqueId id;
    if (!pinTo(coreOf(2 * rank / ranks))) return "not pinned";
    if (const std::string failed = courier.exchange(rank, &id); !failed.empty()) return failed;
    const weftConfig_t config = configOf(world);
    if (weftCommInitRankConfig(&r.comm, ranks, id, rank, &config) != weftSuccess) return "not made";
    const std::string failed = body(r);
    const weftResult_t ended = weftCommDestroy(r.comm);
    return failed.empty() ? outcome(ended, nullptr) : failed;
  }));
}

class NumaNodes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (coreOf(0) < 0 || coreOf(1) < 0) GTEST_SKIP() << "this machine has one NUMA node";
  }
};

TEST_F(NumaNodes, HoldTheWindowsOfTheirRanksAlone) {
  const std::string wrong = onTwoNodes(2, [](const Rank& r) -> std::string {
    Rank split = r;
    std::string failed = callAround(r);
    if (weftCommSplit(r.comm, 0, r.rank, &split.comm, nullptr) != weftSuccess) return "not split";
    if (failed.empty()) failed = callAround(split);
    if (failed.empty()) failed = explainsFarMemory(r);
    if (failed.empty()) failed = explainsFarMemory(split);
    const Placed placed = placedOn(r.rank);
    if (failed.empty() && (placed.here < 100 || placed.elsewhere != 0))
      failed = std::to_string(placed.here) + " pages on the node, " +
               std::to_string(placed.elsewhere) + " elsewhere";
    weftCommDestroy(split.comm);
    return failed;
  });
  EXPECT_EQ(wrong, "");
}

// Two levels may be chosen, and deliver.
TEST_F(NumaNodes, AreLevels) {
  const std::string wrong = onTwoNodes(4, [](const Rank& r) -> std::string {
    const std::string all = explained(r.comm, "all_gather");
    if (all.find("two-level:") == std::string::npos) return all;
    weftOpts_t options = WEFT_OPTS_INITIALIZER;
    options.algorithm = "two-level";
    for (const std::size_t count : {std::size_t{3}, std::size_t{100000}}) {
      const std::vector<int> mine(count, r.rank);
      std::vector<int> out(4 * count, -1);
      const auto ended =
          weftAllGather(mine.data(), out.data(), count, weftInt, r.comm, nullptr, &options);
      if (ended != weftSuccess) return outcome(ended, r.comm);
      for (std::size_t i = 0; i < out.size(); ++i)
        if (out[i] != static_cast<int>(i / count)) return "gathered " + std::to_string(out[i]);
    }
    return "";
  });
  EXPECT_EQ(wrong, "");
}

// Ranks that have all cores are of no node, and a machine of one has nothing to say.
TEST(Numa, ProcessesOfOneNodeHearNothingOfIt) {
  const std::string failed = failures({Kind::Processes, 2, "shm"}, [](const Rank& r) {
    const std::string all = explained(r.comm, "all_gather");
    return all.empty() || all.find("far memory") != std::string::npos ? all + "?" : "";
  });
  EXPECT_EQ(failed, "");
}

}  // namespace
}  // namespace weft::testing
