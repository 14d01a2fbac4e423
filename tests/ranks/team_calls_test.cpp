// SPDX-License-Identifier: Apache-2.0
// The threads of a rank make its calls together: each call delivers, to the bit, what one thread's
// does; and threads that do not come, or want something else, are named on all ranks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <random>

#include "checked_call.h"
#include "region.h"
#include "shard_training.h"

namespace weft::testing {
namespace {

// Where whatever may be shared is.
[[maybe_unused]] const int slowly = ::setenv("WEFT_TUNE_FILE", WEFT_SLOW_COPIES, 1);

constexpr int kTeam = 3;

class TeamCalls : public ::testing::TestWithParam<World> {
 protected:
  // What goes wrong where each rank's team of `threads` runs `body`.
  static std::string failed(int threads, const std::function<std::string(const Rank&)>& body) {
    return failures(GetParam(), [&](const Rank& r) { return withTeamCalls(r, threads, body); });
  }
};

std::string runCase(const Rank& r, int threads, const Case& c) {
  CheckedCall checked(c, r);
  const std::string failed =
      failuresIn(inRegion(threads, [&](int) { return outcome(checked.make(), r.comm); }));
  return failed.empty() ? checked.check() : failed;
}

TEST_P(TeamCalls, DeliverWhatADirectComputationDoes) {
  const std::uint64_t seed = std::random_device()();
  for (const int threads : {2, kTeam, 8}) {
    const std::string wrong = failed(threads, [&](const Rank& r) -> std::string {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 60 / kSlowdown; ++i) {
        Case c = randomCase(random, r.ranks, i % 8 == 7 ? std::size_t{1} << 20 : 64 << 10);
        c.algorithm.clear();
        if (const std::string one = runCase(r, threads, c); !one.empty())
          return describe(c) + ": " + one;
      }
      return "";
    });
    EXPECT_EQ(wrong, "") << threads << " threads, seed " << seed;
  }
}

// Sums of arbitrary floats, twice by the same threads.
std::string sumBy(int threads, const Rank& r, std::vector<float>* sums) {
  std::vector<float> in(100003);
  std::mt19937_64 random(static_cast<std::uint64_t>(r.rank) + 99);
  for (float& x : in) x = static_cast<float>(random() % 200) * (random() % 2 ? 1e-3f : -1.7f);
  sums->resize(in.size());
  return failuresIn(inRegion(threads, [&](int) {
    std::string failed;
    for (int i = 0; i < 2 && failed.empty(); ++i)
      failed = outcome(weftAllReduce(in.data(), sums->data(), in.size(), weftFloat, weftSum, r.comm,
                                     nullptr, nullptr),
                       r.comm);
    return failed;
  }));
}

TEST_P(TeamCalls, GiveTheSameBits) {
  const std::string wrong = failures(GetParam(), [](const Rank& r) {
    std::vector<float> alone;
    std::string failed = sumBy(1, r, &alone);
    for (const int threads : {2, kTeam, 8})
      if (failed.empty())
        failed = withTeamCalls(r, threads, [&](const Rank& team) {
          std::vector<float> together;
          const std::string ended = sumBy(threads, team, &together);
          return ended.empty() && together != alone ? "other bits" : ended;
        });
    return failed;
  });
  EXPECT_EQ(wrong, "");
}

TEST_P(TeamCalls, SendAndReceive) {
  const std::string wrong = failed(kTeam, [](const Rank& r) -> std::string {
    std::vector<int> data(50000, r.rank);
    const std::string failed = failuresIn(inRegion(kTeam, [&](int) {
      const weftResult_t ended =
          r.rank % 2 == 0
              ? weftSend(data.data(), data.size(), weftInt, r.rank + 1, r.comm, nullptr)
              : weftRecv(data.data(), data.size(), weftInt, r.rank - 1, r.comm, nullptr);
      return outcome(ended, r.comm);
    }));
    return failed.empty() && data.back() != r.rank / 2 * 2 ? "not received" : failed;
  });
  EXPECT_EQ(wrong, "");
}

// A shard's communicators come from the team's and are at work at the same time: they are called by
// the shard's own threads.
std::string trainBesideCalls(const Rank& r, Steps& steps, std::vector<float>* weights) {
  Shard shard(steps, r, shardConfig(weftFloat32));
  if (!shard.start()) return "";
  std::vector<float> data(100000, 1);
  const std::string failed = failuresIn(inRegion(kTeam + 1, [&](int t) {
    std::string ended;
    for (int s = 0; s < 3 && t == kTeam; ++s) shard.step(s, stepArgs());
    for (int i = 0; i < 30 && t < kTeam && ended.empty(); ++i)
      ended = outcome(weftAllReduce(data.data(), data.data(), data.size(), weftFloat, weftMax,
                                    r.comm, nullptr, nullptr),
                      r.comm);
    return ended;
  }));
  *weights = shard.collect();
  return failed;
}

TEST_P(TeamCalls, LeaveShardsToTheirOwnThreads) {
  const std::string wrong = failures(GetParam(), [](const Rank& r) -> std::string {
    Steps steps;
    const std::vector<float> alone = train(steps, r, shardConfig(weftFloat32), stepArgs());
    std::vector<float> beside;
    const std::string failed = withTeamCalls(
        r, kTeam, [&](const Rank& team) { return trainBesideCalls(team, steps, &beside); });
    steps.expect(alone == beside, "other weights");
    return failed.empty() ? steps.failed() : failed;
  });
  EXPECT_EQ(wrong, "");
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// "" if all texts are of this error and say that.
std::string expectAll(const std::vector<std::string>& texts, const char* error,
                      const std::string& part) {
  for (const std::string& text : texts)
    if (!has(text, error) || !has(text, part)) return "got: " + text;
  return "";
}

std::string barrier(const Rank& r, int timeoutMs = WEFT_UNDEF_INT) {
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  opts.timeoutMs = timeoutMs;
  return outcome(weftBarrier(r.comm, nullptr, &opts), r.comm);
}

TEST_P(TeamCalls, AThreadThatCallsSomethingElseIsNamedOnAllRanks) {
  const std::string wrong = failed(kTeam, [](const Rank& r) {
    std::vector<float> data(100);
    const auto texts = inRegion(kTeam, [&](int t) {
      const std::size_t count = r.rank == 1 && t == 1 ? 99 : 100;
      return outcome(weftAllReduce(data.data(), data.data(), count, weftFloat, weftSum, r.comm,
                                   nullptr, nullptr),
                     r.comm);
    });
    const std::string failed = expectAll(texts, "mismatched calls", "its threads disagree");
    const std::string both = expectAll(texts, "all_reduce(count=99,", "all_reduce(count=100,");
    return failed.empty() ? both : failed;
  });
  EXPECT_EQ(wrong, "");
}

// In buffers, and in what a call is not described by.
TEST_P(TeamCalls, AnyOtherArgumentIsNamed) {
  for (const bool options : {false, true}) {
    const std::string wrong = failed(2, [&](const Rank& r) {
      std::vector<float> data(100);
      const auto texts = inRegion(2, [&](int t) {
        weftOpts_t opts = WEFT_OPTS_INITIALIZER;
        opts.reproducible = options && t == 1;
        float* const in = data.data() + (options ? 0 : t);
        return outcome(weftAllReduce(in, in, 50, weftFloat, weftSum, r.comm, nullptr, &opts),
                       r.comm);
      });
      return expectAll(texts, "mismatched calls", options ? "with other options" : " from 0x");
    });
    EXPECT_EQ(wrong, "");
  }
}

TEST_P(TeamCalls, FewerThreadsThanDeclaredAreNamedOnAllRanks) {
  const std::string wrong = failed(kTeam, [](const Rank& r) -> std::string {
    std::atomic<pid_t> absent{0};
    const auto texts = inRegion(kTeam, [&](int t) -> std::string {
      if (const std::string first = barrier(r); !first.empty()) return first;
      const bool stays = r.rank != 1 || t != 2;
      if (!stays) absent = ::gettid();
      return stays ? barrier(r, r.rank == 1 ? 300 : WEFT_UNDEF_INT) : "";
    });
    const std::size_t here = r.rank == 1 ? kTeam - 1 : kTeam;
    const std::vector<std::string> left(texts.begin(), texts.begin() + static_cast<long>(here));
    const std::string failed = expectAll(left, "timed out", "barrier() on communicator ");
    if (!failed.empty()) return failed;
    const std::string name = r.rank == 1 ? ", not thread " + std::to_string(absent) : "";
    return expectAll(left, "timed out after 300 ms: ", "2 of 3 threads have made it" + name);
  });
  EXPECT_EQ(wrong, "");
}

std::string nameOfWorld(const ::testing::TestParamInfo<World>& p) {
  return nameOf(p.param.kind) + std::to_string(p.param.ranks);
}
INSTANTIATE_TEST_SUITE_P(Worlds, TeamCalls,
                         ::testing::Values(World{Kind::Threads, 2}, World{Kind::Threads, 4},
                                           World{Kind::Processes, 2}, World{Kind::Processes, 4}),
                         nameOfWorld);

// A communicator of one rank with a team of two.
struct Alone {
  Alone() {
    weftConfig_t config = WEFT_CONFIG_INITIALIZER;
    config.threads = 2;
    config.teamCalls = 1;
    result = weftCommInitAllConfig(&rank.comm, 1, nullptr, &config);
  }
  ~Alone() { weftCommDestroy(rank.comm); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  Rank rank;
  weftResult_t result = weftSuccess;
};

TEST(TeamCallsUsage, StreamsAndGroupsAreRefusedWithoutEffect) {
  const Alone alone;
  weftStream_t stream = nullptr;
  ASSERT_EQ(weftStreamCreate(&stream), weftSuccess);
  int one = 1;
  EXPECT_EQ(weftBarrier(alone.rank.comm, stream), weftInvalidUsage);
  EXPECT_EQ(weftSend(&one, 1, weftInt, 0, alone.rank.comm, stream), weftInvalidUsage);
  weftGroupStart();
  EXPECT_EQ(weftBarrier(alone.rank.comm, nullptr), weftInvalidUsage);
  EXPECT_EQ(weftRecv(&one, 1, weftInt, 0, alone.rank.comm, nullptr), weftInvalidUsage);
  EXPECT_TRUE(has(weftGetLastError(nullptr), "with neither streams nor groups"));
  EXPECT_EQ(weftGroupEnd(), weftSuccess);
  EXPECT_EQ(failuresIn(inRegion(2, [&](int) { return barrier(alone.rank); })), "");
  weftStreamDestroy(stream);
}

TEST(TeamCallsUsage, APoolIsAnotherForm) {
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.threads = 2;
  config.teamCalls = 1;
  config.parallelFor = [](void*, int, void (*)(void*, int), void*) {};
  weftComm_t comm = nullptr;
  EXPECT_EQ(weftCommInitAllConfig(&comm, 1, nullptr, &config), weftInvalidArgument);
  EXPECT_TRUE(has(weftGetLastError(nullptr), "two forms of a team")) << weftGetLastError(nullptr);
}

// While two are in a call that waits for another rank, a third has no seat in it; afterwards all is
// well.
TEST(TeamCallsUsage, OneThreadTooManyIsRefused) {
  std::atomic<bool> refused{false};
  const std::string wrong = failures({Kind::Threads, 2}, [&](const Rank& r) {
    return withTeamCalls(r, 2, [&](const Rank& team) -> std::string {
      if (team.rank == 1)
        while (!refused) sleepMs(1);
      std::atomic<int> wrongly{0};
      const auto texts = inRegion(team.rank == 0 ? 3 : 2, [&](int) -> std::string {
        const std::string ended = barrier(team);
        if (!has(ended, "more than its 2 threads at once")) return ended;
        if (refused.exchange(true)) ++wrongly;
        return "";
      });
      return wrongly != 0 ? "refused twice" : failuresIn(texts);
    });
  });
  EXPECT_EQ(wrong, "");
}

// A thread that waits for the others of its team hears of the end.
TEST(TeamCallsUsage, AbortAndDestroyEndTheWaitForOthers) {
  for (const bool aborts : {true, false}) {
    auto alone = std::make_unique<Alone>();
    const Rank rank = alone->rank;
    std::string ended;
    std::thread waits([&] { ended = barrier(rank); });
    sleepMs(50);
    if (aborts) {
      EXPECT_EQ(weftCommAbort(rank.comm), weftSuccess);
      waits.join();
      EXPECT_TRUE(has(ended, "abort")) << ended;
      EXPECT_TRUE(has(barrier(rank), "abort"));  // later calls need nobody else to fail
    } else {
      alone.reset();
      waits.join();
      const bool came = has(ended, "is being destroyed");  // before the end of the handle
      EXPECT_TRUE(came || has(ended, "was destroyed")) << ended;
    }
  }
}

struct Met {
  std::atomic<int> threads{0};  // of rank 1, that have met rank 0's
};

TEST(TeamCallsUsage, ADeathIsToldToAllThreads) {
  Shared<Met> met;
  Processes processes({Kind::Processes, 2}, [&](const Rank& r) {
    return withTeamCalls(r, kTeam, [&](const Rank& team) -> std::string {
      const auto texts = inRegion(kTeam, [&](int) {
        if (const std::string first = barrier(team); !first.empty()) return first;
        if (team.rank == 1) {
          met->threads.fetch_add(1);
          sleepMs(60000);
        }
        return barrier(team);
      });
      return expectAll(texts, "remote error", "rank 1");
    });
  });
  for (int ms = 0; ms < 30000 && met->threads.load() < kTeam; ++ms) sleepMs(1);
  processes.signal(1, SIGKILL);
  EXPECT_EQ(processes.join()[0], "");
}

}  // namespace
}  // namespace weft::testing
