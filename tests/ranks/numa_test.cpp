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

std::string callAround(const Rank& r) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{1} << 20}) {
    std::vector<float> data(count, 1);
    if (const auto ended = weftAllReduce(data.data(), data.data(), count, weftFloat, weftSum,
                                         r.comm, nullptr, nullptr);
        ended != weftSuccess)
      return outcome(ended, r.comm);
    if (data[count - 1] != 2) return "the sum is wrong";
  }
  return "";
}

TEST(Numa, WindowsAreOnTheNodeOfTheirRankAlone) {
  if (coreOf(0) < 0 || coreOf(1) < 0) GTEST_SKIP() << "this machine has one NUMA node";
  const World world{Kind::Processes, 2, "shm"};
  const IdCourier courier(2);
  const std::vector<std::string> texts = forkRanks(2, [&](int rank) -> std::string {
    Rank r{rank, 2, nullptr};
    weftUniqueId id;
    if (!pinTo(coreOf(rank))) return "not pinned";
    if (const std::string failed = courier.exchange(rank, &id); !failed.empty()) return failed;
    const weftConfig_t config = configOf(world);
    weftComm_t parent = nullptr;
    if (weftCommInitRankConfig(&parent, 2, id, rank, &config) != weftSuccess) return "not made";
    r.comm = parent;
    std::string failed = callAround(r);
    if (failed.empty() && weftCommSplit(parent, 0, rank, &r.comm, &config) != weftSuccess)
      return "not split";
    if (failed.empty()) failed = callAround(r);
    const Placed placed = placedOn(rank);
    if (failed.empty() && (placed.here < 100 || placed.elsewhere != 0))
      failed = std::to_string(placed.here) + " pages on the node, " +
               std::to_string(placed.elsewhere) + " elsewhere";
    weftCommDestroy(r.comm);
    weftCommDestroy(parent);
    return failed;
  });
  EXPECT_EQ(failuresIn(texts), "");
}

}  // namespace
}  // namespace weft::testing
