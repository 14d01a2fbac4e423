// SPDX-License-Identifier: Apache-2.0
// Memory of weftMemAlloc: it works like any other in every collective, whoever else maps it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

class OwnMemory : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, OwnMemory, ::testing::Values(Kind::Threads, Kind::Processes),
                         [](const auto& of) { return nameOf(of.param); });

// `count` ints of weftMemAlloc.
class Ints {
 public:
  Ints(Steps& steps, std::size_t count) : count_(count) {
    steps.ok(weftMemAlloc(reinterpret_cast<void**>(&data_), count * sizeof(int)), "allocate");
  }
  ~Ints() { weftMemFree(data_); }
  Ints(const Ints&) = delete;
  Ints& operator=(const Ints&) = delete;
  int* data() const { return data_; }
  void fill(int value) { std::fill_n(data_, count_, value); }
  bool all(int value) const {
    return std::all_of(data_, data_ + count_, [&](int x) { return x == value; });
  }

 private:
  std::size_t count_;
  int* data_ = nullptr;
};

// The sum of all ranks' numbers from 1, in and out of place, and everybody's number.
void addAndGather(Steps& steps, weftComm_t comm, Ints& in, Ints& out, std::size_t count) {
  int rank = -1, ranks = 0;
  steps.ok(weftCommUserRank(comm, &rank), "rank");
  steps.ok(weftCommCount(comm, &ranks), "count");
  if (!steps.failed().empty()) return;
  const int sum = ranks * (ranks + 1) / 2;
  in.fill(rank + 1);
  out.fill(-1);
  steps.ok(weftAllReduce(in.data(), out.data(), count, weftInt, weftSum, comm, nullptr, nullptr),
           "out of place");
  steps.expect(out.all(sum) && in.all(rank + 1), "a wrong sum, or the input was touched");
  steps.ok(weftAllReduce(in.data(), in.data(), count, weftInt, weftSum, comm, nullptr, nullptr),
           "in place");
  steps.expect(in.all(sum), "a wrong sum in place");
  const std::size_t share = count / static_cast<std::size_t>(ranks);
  in.fill(rank);
  steps.ok(weftAllGather(in.data(), out.data(), share, weftInt, comm, nullptr, nullptr), "gather");
  for (int r = 0; r < ranks; ++r)
    steps.expect(out.data()[static_cast<std::size_t>(r) * share + share - 1] == r, "gathered");
}

TEST_P(OwnMemory, WorksInCollectives) {
  const std::string failed = failures({GetParam(), 3}, [](const Rank& r) {
    Steps steps;
    for (const std::size_t count : {3u, 3000u, 300000u}) {
      Ints in(steps, count), out(steps, count);
      steps.expect(in.all(0) && out.all(0), "not zeroed");
      for (int round = 0; round < 3; ++round) addAndGather(steps, r.comm, in, out, count);
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// One rank's buffers are its own, others' come from malloc: whatever is chosen must suit all.
TEST_P(OwnMemory, MixesWithOtherMemory) {
  const std::string failed = failures({GetParam(), 3}, [](const Rank& r) {
    Steps steps;
    constexpr std::size_t kCount = 100000;
    Ints own(steps, kCount);
    std::vector<int> other(kCount);
    int* const data = r.rank == 1 ? own.data() : other.data();
    for (int round = 0; round < 3; ++round) {
      std::fill_n(data, kCount, r.rank);
      steps.ok(weftAllReduce(data, data, kCount, weftInt, weftSum, r.comm, nullptr, nullptr),
               "sum");
      steps.expect(std::count(data, data + kCount, 3) == kCount, "a wrong sum");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// Sums and a broadcast of memory that only CMA reaches, some of it shared.
void checkByCma(Steps& steps, const Rank& r, std::size_t count) {
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  opts.algorithm = "shared:direct";
  Ints own(steps, count);
  std::vector<int> in(count, r.rank + 1), other(count, -1);
  int* const out = r.rank == 1 ? own.data() : other.data();
  const auto expect = [&](const int* data, std::size_t n, int value, const char* what) {
    steps.expect(static_cast<std::size_t>(std::count(data, data + n, value)) == n, what);
  };
  const int sum = r.ranks * (r.ranks + 1) / 2;
  steps.ok(weftAllReduce(in.data(), out, count, weftInt, weftSum, r.comm, nullptr, &opts), "sum");
  expect(out, count, sum, "a wrong sum");
  steps.ok(weftAllReduce(in.data(), in.data(), count, weftInt, weftMax, r.comm, nullptr, &opts),
           "max");
  expect(in.data(), count, r.ranks, "a wrong maximum in place");
  const std::size_t share = count / static_cast<std::size_t>(r.ranks);
  steps.ok(weftReduceScatter(out, in.data(), share, weftInt, weftSum, r.comm, nullptr, &opts),
           "scatter");
  expect(in.data(), share, sum * r.ranks, "a wrong share");
  std::fill_n(out, count, r.rank);
  steps.ok(weftBroadcast(out, out, count, weftInt, 1, r.comm, nullptr, &opts), "broadcast");
  expect(out, count, 1, "a wrong broadcast");
}

TEST_P(OwnMemory, NeedNotBeOwnForCma) {
  const std::string failed = failures({GetParam(), 3}, [](const Rank& r) {
    Steps steps;
    for (const std::size_t count : {3u, 1000u, 100001u, 900000u}) {
      for (int round = 0; round < 2; ++round) checkByCma(steps, r, count);
    }
    return steps.failed();
  });
  if (failed.find("cannot write into its peers") != std::string::npos) GTEST_SKIP() << failed;
  EXPECT_EQ(failed, "");
}

// Calls of one kind, in an order that all ranks know, on buffers of which now and then one is
// shared, none, or all: what runs must be the same on all ranks, also when few calls ask.
TEST_P(OwnMemory, ChangesFromCallToCall) {
  const std::string failed = failures({GetParam(), 3}, [](const Rank& r) {
    Steps steps;
    constexpr std::size_t kCount = 30000;
    Ints own(steps, kCount);
    std::vector<int> other(kCount);
    for (int i = 0; i < 400; ++i) {
      const bool isOwn = i / 100 % 2 == 1 || i % 50 == r.rank;
      int* const data = isOwn ? own.data() : other.data();
      std::fill_n(data, kCount, r.rank + i);
      steps.ok(weftAllReduce(data, data, kCount, weftInt, weftSum, r.comm, nullptr, nullptr),
               "sum");
      steps.expect(std::count(data, data + kCount, 3 + 3 * i) == kCount, "a wrong sum");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// The same buffers in the parent and in its halves, made before and freed after both.
TEST_P(OwnMemory, IsNotTiedToACommunicator) {
  const std::string failed = failures({GetParam(), 4}, [](const Rank& r) {
    Steps steps;
    constexpr std::size_t kCount = 40000;
    Ints in(steps, kCount), out(steps, kCount);
    weftComm_t half = nullptr;
    steps.ok(weftCommSplit(r.comm, r.rank % 2, 0, &half, nullptr), "split");
    for (int round = 0; round < 2; ++round) {
      addAndGather(steps, r.comm, in, out, kCount);
      addAndGather(steps, half, in, out, kCount);
    }
    steps.ok(weftCommDestroy(half), "destroy");
    addAndGather(steps, r.comm, in, out, kCount);
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST(OwnMemoryAndFork, ChildSharesTheBytesAndFreesNothing) {
  int* memory = nullptr;
  ASSERT_EQ(weftMemAlloc(reinterpret_cast<void**>(&memory), 8192), weftSuccess);
  memory[0] = 1;
  const pid_t child = ::fork();
  if (child == 0) {
    int* own = nullptr;
    const bool made = weftMemAlloc(reinterpret_cast<void**>(&own), 8192) == weftSuccess;
    memory[1] = memory[0] + 1;
    const bool apart = made && own[0] == 0 && own != memory;
    ::_exit(apart && weftMemFree(memory) == weftSuccess && weftMemFree(own) == weftSuccess ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory[0], 1);
  EXPECT_EQ(memory[1], 2);
  EXPECT_EQ(weftMemFree(memory), weftSuccess);
  EXPECT_EQ(weftMemFree(memory), weftInvalidArgument);
}

TEST(PoolBlocks, AreFreedOnceByTheirProcess) {
  int other = 0;
  EXPECT_EQ(weftPoolFree(&other), weftInvalidArgument);
  void* block = nullptr;
  EXPECT_EQ(weftPoolAlloc(nullptr, 8), weftInvalidArgument);
  ASSERT_EQ(weftPoolAlloc(&block, 0), weftSuccess);
  EXPECT_EQ(block, nullptr);
  ASSERT_EQ(weftPoolAlloc(&block, 100000), weftSuccess);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(weftMemFree(block), weftInvalidArgument);  // its memory stays the pool's
  const pid_t child = ::fork();
  if (child == 0) ::_exit(weftPoolFree(block) == weftSuccess ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(weftPoolFree(nullptr), weftSuccess);
  EXPECT_EQ(weftPoolFree(block), weftSuccess);
  EXPECT_EQ(weftPoolFree(block), weftInvalidArgument);
}

// What a window holds follows what is called: little for short messages, more for long ones.
TEST_P(OwnMemory, OfTheLibraryFollowsUse) {
  const std::string failed = failures({GetParam(), 8}, [](const Rank& r) {
    Steps steps;
    const auto held = [&] {
      weftMemStats_t stats = {sizeof(stats), 0, 0, 0};
      steps.ok(weftCommMemStats(r.comm, &stats), "stats");
      steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");  // peers write to it in time
      return stats.shared;
    };
    const auto add = [&](std::size_t count) {
      std::vector<int> data(count, 1);
      weftOpts_t opts = WEFT_OPTS_INITIALIZER;
      opts.algorithm = "mesh";
      steps.ok(
          weftAllReduce(data.data(), data.data(), count, weftInt, weftSum, r.comm, nullptr, &opts),
          "sum");
      steps.expect(data.back() == r.ranks, "a wrong sum");
    };
    for (int round = 0; round < 12; ++round) add(2);
    const std::size_t little = held();
    steps.expect(little <= std::size_t{256} << 10,
                 std::to_string(little) + " bytes for short ones");
    add(200000);
    steps.expect(held() >= little + (std::size_t{256} << 10), "no more for long ones");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// A ring has memory at those who get messages, one for each pair that has used it; of what is published
// there, at who sends.
TEST_P(OwnMemory, OfRingsFollowsPairs) {
  const std::string failed = failures({GetParam(), 4}, [](const Rank& r) {
    Steps steps;
    const auto held = [&] {
      weftMemStats_t stats = {sizeof(stats), 0, 0, 0};
      steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");  // all have made the calls before
      steps.ok(weftCommMemStats(r.comm, &stats), "stats");
      steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");
      return stats.shared;
    };
    const auto gains = [&](std::size_t count, int root, const char* algorithm = "direct:staged") {
      const std::size_t before = held();
      std::vector<int> data(count, r.rank);
      weftOpts_t opts = WEFT_OPTS_INITIALIZER;
      opts.algorithm = algorithm;
      for (int i = 0; i < 200; ++i)
        steps.ok(
            weftBroadcast(data.data(), data.data(), count, weftInt, root, r.comm, nullptr, &opts),
            "broadcast");
      steps.expect(data.back() == root, "other data");
      return held() - before;
    };
    const auto expect = [&](std::size_t bytes, std::size_t least, std::size_t most, int root) {
      const bool receives = r.rank != root;
      steps.expect(receives ? least <= bytes && bytes <= most : bytes == 0,
                   std::to_string(bytes) + " bytes more with root " + std::to_string(root));
    };
    for (int i = 0; i < 100; ++i)
      (void)held();  // barriers try their forms, and ranks tell each other: twice
    steps.expect(held() != 0, "no window");
    constexpr std::size_t kFlags = std::size_t{8} << 10, kStages = std::size_t{128} << 10;
    constexpr std::size_t kDeep = 4 * kStages;            // where ranks share cores
    constexpr std::size_t kPages = std::size_t{8} << 10;  // at the ends
    expect(gains(2, 0), kFlags, kFlags + kPages, 0);
    expect(gains(100, 0), kStages, kDeep + kPages, 0);
    expect(gains(1000, 0), 0, 0, 0);
    expect(gains(1000, 2), kStages, kFlags + kDeep + 2 * kPages, 2);
    const std::size_t published = gains(1000, 1, "direct:published");
    if (r.rank == 1)
      steps.expect(kStages <= published && published <= kDeep + kPages, "not at the root");
    else
      steps.expect(published <= kFlags + kPages, "at a reader");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

}  // namespace
}  // namespace weft::testing
