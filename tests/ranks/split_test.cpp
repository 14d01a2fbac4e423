// SPDX-License-Identifier: Apache-2.0
// weftCommSplit: who is in which new communicator, and that parent and children live on apart.
#include <gtest/gtest.h>

#include <climits>
#include <filesystem>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "../has_libfabric.h"
#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

// A communicator made by a split; null if this rank is in none.
class Part {
 public:
  Part(Steps& steps, weftComm_t parent, int color, int key, const weftConfig_t* config = nullptr) {
    steps.ok(weftCommSplit(parent, color, key, &comm_, config), "split");
  }
  ~Part() { weftCommDestroy(comm_); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  operator weftComm_t() const { return comm_; }

  int rank() const {
    int rank = -1;
    weftCommUserRank(comm_, &rank);
    return rank;
  }
  int count() const {
    int count = -1;
    weftCommCount(comm_, &count);
    return count;
  }

 private:
  weftComm_t comm_ = nullptr;
};

// The communicator must consist of the world's ranks `wanted`, in that order, and compute.
void checkMembers(Steps& steps, const Rank& r, weftComm_t comm, const std::vector<int>& wanted) {
  int count = -1, rank = -1;
  steps.ok(weftCommCount(comm, &count), "count");
  steps.ok(weftCommUserRank(comm, &rank), "rank");
  if (!steps.expect(count == static_cast<int>(wanted.size()), "size " + std::to_string(count)))
    return;
  steps.expect(wanted[static_cast<std::size_t>(rank)] == r.rank,
               "is rank " + std::to_string(rank) + " of the new communicator");
  std::vector<int> members(wanted.size(), -1);
  steps.ok(weftAllGather(&r.rank, members.data(), 1, weftInt, comm, nullptr, nullptr), "gather");
  steps.expect(members == wanted, "the members are others");
}

// All ranks of the world, in order: the parent must be what it was.
void checkParent(Steps& steps, const Rank& r) {
  std::vector<int> all(static_cast<std::size_t>(r.ranks));
  std::iota(all.begin(), all.end(), 0);
  checkMembers(steps, r, r.comm, all);
}

// A sum of `count` ones over the communicator.
void checkSum(Steps& steps, weftComm_t comm, int ranks, std::size_t count) {
  const std::vector<std::uint64_t> in(count, 1);
  std::vector<std::uint64_t> out(count);
  steps.ok(weftAllReduce(in.data(), out.data(), count, weftUint64, weftSum, comm, nullptr, nullptr),
           "sum");
  steps.expect(out == std::vector<std::uint64_t>(count, static_cast<std::uint64_t>(ranks)),
               "wrong sums");
}

std::vector<int> everySecond(int from, int ranks) {
  std::vector<int> chosen;
  for (int r = from; r < ranks; r += 2) chosen.push_back(r);
  return chosen;
}

class Split : public ::testing::TestWithParam<World> {
 protected:
  void onEveryRank(const Body& body) { EXPECT_EQ(failures(GetParam(), body), ""); }
};

TEST_P(Split, ColorsSeparateAndTheParentStays) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const int half = r.rank % 2;
    {
      const Part part(steps, r.comm, half, 0);
      checkMembers(steps, r, part, everySecond(half, r.ranks));
      checkParent(steps, r);
      checkMembers(steps, r, part, everySecond(half, r.ranks));
    }
    checkParent(steps, r);
    return steps.failed();
  });
}

TEST_P(Split, KeysOrderAndEqualKeysKeepTheParentsOrder) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    std::vector<int> all(static_cast<std::size_t>(r.ranks));
    std::iota(all.begin(), all.end(), 0);
    checkMembers(steps, r, Part(steps, r.comm, INT_MAX, 7), all);
    const std::vector<int> reversed(all.rbegin(), all.rend());
    checkMembers(steps, r, Part(steps, r.comm, 3, -r.rank), reversed);
    checkMembers(steps, r,
                 Part(steps, r.comm, 3, r.rank == 0 ? INT_MAX : INT_MIN + r.ranks - r.rank), [&] {
                   std::vector<int> wanted(reversed.begin(), reversed.end() - 1);
                   wanted.push_back(0);
                   return wanted;
                 }());
    // Odd ranks first, each half in the parent's order.
    std::vector<int> oddFirst = everySecond(1, r.ranks);
    for (const int even : everySecond(0, r.ranks)) oddFirst.push_back(even);
    checkMembers(steps, r, Part(steps, r.comm, 0, 1 - r.rank % 2), oddFirst);
    return steps.failed();
  });
}

TEST_P(Split, NoColorGetsNone) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    {
      const bool out = r.rank == 0;
      const Part rest(steps, r.comm, out ? WEFT_SPLIT_NOCOLOR : 5, 0);
      steps.expect((static_cast<weftComm_t>(rest) == nullptr) == out, "null, or not, is wrong");
      std::vector<int> others(static_cast<std::size_t>(r.ranks - 1));
      std::iota(others.begin(), others.end(), 1);
      if (!out) checkMembers(steps, r, rest, others);
    }
    const Part nobody(steps, r.comm, WEFT_SPLIT_NOCOLOR, r.rank);
    steps.expect(static_cast<weftComm_t>(nobody) == nullptr, "a communicator of nobody");
    checkParent(steps, r);
    return steps.failed();
  });
}

TEST_P(Split, EveryRankAlone) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Part alone(steps, r.comm, r.rank, 0);
    checkMembers(steps, r, alone, {r.rank});
    checkSum(steps, alone, 1, 1000);
    checkParent(steps, r);
    return steps.failed();
  });
}

// Halves of halves down to single ranks, all alive at once, then used from the smallest up.
TEST_P(Split, OfASplit) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    std::vector<std::unique_ptr<Part>> parts;
    weftComm_t parent = r.comm;
    int size = r.ranks, rank = r.rank;
    while (size > 1 && steps.failed().empty()) {
      const bool upper = rank >= size / 2;
      parts.push_back(std::make_unique<Part>(steps, parent, upper, rank));
      parent = *parts.back();
      const int wanted = upper ? size - size / 2 : size / 2;
      size = parts.back()->count(), rank = parts.back()->rank();
      if (!steps.expect(size == wanted, "size " + std::to_string(size))) break;
    }
    for (auto part = parts.rbegin(); part != parts.rend(); ++part)
      checkSum(steps, **part, (*part)->count(), 3000);
    checkParent(steps, r);
    return steps.failed();
  });
}

// Both halves work at the same time, a different amount each, without a call of the parent between.
TEST_P(Split, HalvesWorkAtOnce) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const int half = r.rank % 2;
    const Part part(steps, r.comm, half, 0);
    const int members = part.count();
    for (int i = 0; i < (half ? 40 : 120) && steps.failed().empty(); ++i)
      checkSum(steps, part, members, half ? 20000 : 100);
    checkParent(steps, r);
    return steps.failed();
  });
}

TEST_P(Split, AChildOutlivesItsParent) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    weftComm_t middle = nullptr;
    steps.ok(weftCommSplit(r.comm, 0, -r.rank, &middle, nullptr), "split");
    const Part child(steps, middle, r.rank % 2, r.rank);
    steps.ok(weftBarrier(middle, nullptr, nullptr), "barrier");
    steps.ok(weftCommDestroy(middle), "destroy");
    checkMembers(steps, r, child, everySecond(r.rank % 2, r.ranks));
    checkParent(steps, r);
    return steps.failed();
  });
}

TEST_P(Split, AnErrorOfAChildIsNotTheParents) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Part child(steps, r.comm, 0, 0);
    const std::size_t count = r.rank == 0 ? 1 : 2;
    const std::uint64_t in[2] = {1, 1};
    std::uint64_t out[2] = {};
    steps.gives(weftMismatch,
                weftAllReduce(in, out, count, weftUint64, weftSum, child, nullptr, nullptr),
                "different counts");
    weftComm_t none = nullptr;
    steps.gives(weftMismatch, weftCommSplit(child, 0, 0, &none, nullptr), "a broken parent");
    steps.expect(none == nullptr, "a child of a broken parent");
    checkParent(steps, r);
    return steps.failed();
  });
}

TEST_P(Split, ConfigIsInheritedOrReplaced) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    weftConfig_t config = WEFT_CONFIG_INITIALIZER;
    config.transport = "faulty:3";
    config.commName = "halves";
    const Part child(steps, r.comm, r.rank % 2, 0, &config);
    checkSum(steps, child, child.count(), 5000);
    char line[256] = "";
    steps.ok(weftExplain(child, "all_reduce", 100, weftFloat, line, sizeof(line)), "explain");
    steps.expect(std::string(line).find("faulty") != std::string::npos || child.count() == 1, line);
    return steps.failed();
  });
}

TEST_P(Split, BadArgumentsHaveNoEffect) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    weftComm_t comm = r.comm;
    steps.gives(weftInvalidArgument, weftCommSplit(r.comm, -5, 0, &comm, nullptr), "color -5");
    steps.expect(comm == nullptr, "not NULL after an error");
    steps.gives(weftInvalidArgument, weftCommSplit(r.comm, 0, 0, nullptr, nullptr), "no newcomm");
    steps.gives(weftInvalidArgument, weftCommSplit(nullptr, 0, 0, &comm, nullptr), "no comm");
    checkParent(steps, r);
    return steps.failed();
  });
}

int openFiles() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += entry.exists() ? 1 : 0;
  return count;
}

// Ranks of a host have all that a split needs, so dozens of communicators cost no descriptors; and
// what those take that are gone is used again, whoever was the last to destroy its end.
TEST(SplitOnOneHost, OpensNothingAndKeepsNothing) {
  const std::string failed = failures({Kind::Processes, 3}, [](const Rank& r) {
    Steps steps;
    const int before = openFiles();
    weftComm_t kept[20] = {};
    for (weftComm_t& comm : kept) steps.ok(weftCommSplit(r.comm, 0, 0, &comm, nullptr), "split");
    steps.expect(openFiles() <= before, "descriptors");
    for (const weftComm_t comm : kept) {
      checkSum(steps, comm, r.ranks, 100);
      weftMemStats_t stats = {sizeof(stats), 0, 0, 0};
      steps.ok(weftCommMemStats(comm, &stats), "stats");
      steps.expect(stats.shared < std::size_t{256} << 10, std::to_string(stats.shared) + " bytes");
    }
    for (std::size_t k = 0; k < std::size(kept); ++k)
      weftCommDestroy(kept[(k + static_cast<std::size_t>(r.rank) * 7) % std::size(kept)]);
    for (int round = 0; round < 400 && steps.failed().empty(); ++round) {
      const Part part(steps, r.comm, (r.rank + round) % 2, round % 3 - r.rank);
      checkSum(steps, part, part.count(), 50);
    }
    checkParent(steps, r);
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// Who has begun to leave may be followed by calls and splits of those who have not.
TEST(SplitOnOneHost, RanksThatAreLateWithDestroyingTouchNoOthersMemory) {
  const std::string failed = failures({Kind::Processes, 3}, [](const Rank& r) {
    Steps steps;
    weftComm_t before = nullptr;
    for (int round = 0; round < 60 && steps.failed().empty(); ++round) {
      weftComm_t comm = nullptr;
      steps.ok(weftCommSplit(r.comm, 0, r.rank, &comm, nullptr), "split");
      if (round % 3 != r.rank) weftCommDestroy(std::exchange(before, nullptr));
      checkSum(steps, comm, r.ranks, 300);
      weftCommDestroy(std::exchange(before, comm));
    }
    weftCommDestroy(before);
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// A split is a call of the parent like others: after those on its streams.
TEST_P(Split, WaitsForQueuedCallsOfTheParent) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Stream stream(steps);
    std::uint64_t one = 1, all = 0;
    steps.ok(weftStreamCallback(
                 stream, [](void*) { sleepMs(20); }, nullptr),
             "nap");
    steps.ok(weftAllReduce(&one, &all, 1, weftUint64, weftSum, r.comm, stream, nullptr), "sum");
    const Part child(steps, r.comm, 0, 0);
    steps.expect(all == static_cast<std::uint64_t>(r.ranks), "the sum is not there");
    checkSum(steps, child, r.ranks, 10);
    return steps.failed();
  });
}

// The child's short timeout is none of the calls that the parent still has to finish.
TEST_P(Split, WithAShortTimeoutDoesNotOvertakeCallsOfTheParent) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Stream stream(steps);
    std::uint64_t one = 1, first = 0, second = 0;
    weftConfig_t hasty = WEFT_CONFIG_INITIALIZER;
    hasty.timeoutMs = 20;
    steps.ok(weftStreamCallback(
                 stream, [](void*) { sleepMs(200); }, nullptr),
             "nap");
    steps.ok(weftAllReduce(&one, &first, 1, weftUint64, weftSum, r.comm, stream, nullptr), "sum");
    const Part child(steps, r.comm, 0, 0, &hasty);
    steps.ok(weftAllReduce(&first, &second, 1, weftUint64, weftSum, r.comm, nullptr, nullptr),
             "sum of sums");
    steps.ok(weftStreamSynchronize(stream), "synchronize");
    const std::uint64_t n = static_cast<std::uint64_t>(r.ranks);
    steps.expect(first == n && second == n * n, "wrong sums");
    return steps.failed();
  });
}

// One thread splits all of its ranks' communicators, in a group.
TEST(SplitInAGroup, OneThreadSplitsForSeveralRanks) {
  constexpr int kRanks = 6;
  Steps steps;
  std::vector<weftComm_t> parents(kRanks), children(kRanks);
  steps.ok(weftCommInitAll(parents.data(), kRanks, nullptr), "init all");
  weftGroupStart();
  for (int r = 0; r < kRanks; ++r)
    steps.ok(weftCommSplit(parents[static_cast<std::size_t>(r)], r % 2, -r,
                           &children[static_cast<std::size_t>(r)], nullptr),
             "split");
  steps.ok(weftGroupEnd(), "end of the group");
  ASSERT_EQ(steps.failed(), "");
  std::vector<int> ranks(kRanks), sums(kRanks);
  std::iota(ranks.begin(), ranks.end(), 0);
  weftGroupStart();
  for (std::size_t r = 0; r < kRanks; ++r)
    steps.ok(weftAllReduce(&ranks[r], &sums[r], 1, weftInt, weftSum, children[r], nullptr, nullptr),
             "sum");
  EXPECT_EQ(weftGroupEnd(), weftSuccess);
  EXPECT_EQ(sums, (std::vector<int>{6, 9, 6, 9, 6, 9}));
  for (const weftComm_t comm : children) weftCommDestroy(comm);
  for (const weftComm_t comm : parents) weftCommDestroy(comm);
  EXPECT_EQ(steps.failed(), "");
}

std::string nameOfWorld(const ::testing::TestParamInfo<World>& info) {
  const std::string transport = info.param.transport;
  return nameOf(info.param.kind) + std::to_string(info.param.ranks) +
         (transport == "auto" ? "" : transport.substr(0, transport.find(':')));
}
std::vector<World> worlds() {
  std::vector<World> worlds{{Kind::Threads, 2},   {Kind::Threads, 5},
                            {Kind::Threads, 8},   {Kind::Processes, 2},
                            {Kind::Processes, 4}, {Kind::Threads, 3, "faulty:3"}};
  if (!test::hasLibfabric()) return worlds;
  worlds.push_back({Kind::Threads, 3, "ofi"});
  worlds.push_back({Kind::Processes, 4, "ofi"});
  return worlds;
}
INSTANTIATE_TEST_SUITE_P(Worlds, Split, ::testing::ValuesIn(worlds()), nameOfWorld);

}  // namespace
}  // namespace weft::testing
