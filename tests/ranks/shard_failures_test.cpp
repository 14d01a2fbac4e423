// SPDX-License-Identifier: Apache-2.0
// Ranks that are killed, abort or go in the middle of a sharded optimizer's step: every other
// rank's call ends soon with an error that says so, and nothing hangs afterwards.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <sstream>
#include <thread>

#include "shard_training.h"

namespace weft::testing {
namespace {

constexpr int kRanks = 4;

struct Scheme {
  const char* name;
  Degrees degrees;
  bool eager;
};
weftShardConfig_t configOf(const Scheme& scheme) {
  weftShardConfig_t config = shardConfig(weftBfloat16, scheme.degrees);
  config.eager = scheme.eager ? 1 : 0;
  return config;
}
weftStepArgs_t argsOf(const Scheme& scheme) {
  weftStepArgs_t args = stepArgs();
  args.skipNonFinite = scheme.eager ? 0 : 1;
  return args;
}

// How the steps of a rank ended, as it goes through a pipe: "<when> <result> <ms of destroy>
// <text>".
struct Ending {
  double at = 0;
  int result = weftSuccess;
  double destroyMs = 0;
  std::string text;
};
Ending read(const std::string& line) {
  Ending ending;
  std::istringstream in(line);
  in >> ending.at >> ending.result >> ending.destroyMs;
  std::getline(in, ending.text);
  return ending;
}

// Trains until a call fails; calls `inBackward` with the number of the step.
weftResult_t trainUntilError(weftShard_t shard, Shard& model, const weftStepArgs_t& args,
                             const std::function<void(int)>& inBackward) {
  for (int step = 0;; ++step) {
    weftShardInfo_t info{};
    info.size = sizeof(info);
    weftResult_t result = weftShardInfo(shard, &info);
    for (int b = info.buckets; b-- > 0 && result == weftSuccess;) result = weftParamWait(shard, b);
    if (result == weftSuccess) result = weftStepBegin(shard, &args);
    if (result != weftSuccess) return result;
    for (const std::size_t p : {kBias, kWeight, kNorm, kEmbedding}) {
      model.addGradient(step, p);
      if (p == kNorm) inBackward(step);
      result = weftGradReady(shard, p);
      if (result != weftSuccess) return result;
    }
    result = weftGradDone(shard);
    if (result == weftSuccess) result = weftStepWait(shard, nullptr);
    if (result != weftSuccess) return result;
  }
}

// The whole life of a rank: later calls must say the same, and destroy must be quick.
std::string live(const Rank& r, const Scheme& scheme, const std::function<void(int)>& inBackward) {
  Steps steps;
  weftShardConfig_t config = configOf(scheme);
  const std::vector<weftParam_t> model = smallModel();
  weftResult_t result = weftSuccess;
  double at = 0, destroyed = 0;
  std::string text;
  {
    Shard shard(steps, r, config);
    if (!shard.start()) return steps.failed();
    result = trainUntilError(shard, shard, argsOf(scheme), inBackward);
    text = weftGetLastError(nullptr);
    at = nowMs();
    const weftStepArgs_t args = argsOf(scheme);
    const weftResult_t later = weftStepBegin(shard, &args);
    if (later == weftSuccess) return "a later step may begin after: " + text;
    if (later != weftInvalidUsage && later != result)
      return "a later call says " + std::string(weftGetLastError(nullptr)) + " after: " + text;
    destroyed = nowMs();
  }
  std::ostringstream line;
  line << std::fixed << at << ' ' << static_cast<int>(result) << ' ' << nowMs() - destroyed << ' '
       << text;
  return line.str();
}

// Empty if every survivor's line tells, within time, of what happened to the victim.
std::string checkSurvivors(const std::vector<std::string>& lines, int victim, weftResult_t wanted,
                           const std::string& part, double since) {
  for (std::size_t r = 0; r < lines.size(); ++r) {
    if (static_cast<int>(r) == victim) continue;
    const Ending ending = read(lines[r]);
    if (ending.result != wanted || ending.text.find(part) == std::string::npos)
      return "rank " + std::to_string(r) + ": " + lines[r];
    if (ending.at - since > kPromptMs || ending.destroyMs > kPromptMs)
      return "rank " + std::to_string(r) + " was told late, or goes late: after " +
             std::to_string(ending.at - since) + " ms: " + lines[r];
  }
  return "";
}

class ShardKill : public ::testing::TestWithParam<Scheme> {};
INSTANTIATE_TEST_SUITE_P(Schemes, ShardKill,
                         ::testing::Values(Scheme{"zero1", {1, 1, 0}, false},
                                           Scheme{"zero3", {0, 0, 0}, false},
                                           Scheme{"mics", {2, 2, 2}, false},
                                           Scheme{"eager", {1, 1, 0}, true}),
                         [](const auto& p) { return std::string(p.param.name); });

// Rank 2 dies between two gradients of its third backward.
TEST_P(ShardKill, InBackwardIsToldToAll) {
  const Scheme scheme = GetParam();
  Shared<std::atomic<double>> killedAt;
  Processes processes({Kind::Processes, kRanks}, [&](const Rank& r) {
    return live(r, scheme, [&](int step) {
      if (r.rank != 2 || step != 2) return;
      killedAt->store(nowMs());
      ::raise(SIGKILL);
    });
  });
  const std::string pid = "pid " + std::to_string(processes.pid(2)) + ")";
  const std::vector<std::string> lines = processes.join();
  EXPECT_EQ(lines[2], "killed by signal 9");
  EXPECT_EQ(checkSurvivors(lines, 2, weftRemoteError, pid, killedAt->load()), "");
}

TEST_P(ShardKill, AtARandomMomentIsToldToAll) {
  const Scheme scheme = GetParam();
  for (int i = 0; i < 12 / kSlowdown; ++i) {
    Shared<std::atomic<int>> running;
    Processes processes({Kind::Processes, kRanks}, [&](const Rank& r) {
      return live(r, scheme, [&](int step) {
        if (step == 0) running->fetch_add(1);
      });
    });
    const double deadline = nowMs() + 20000;
    while (running->load() < kRanks && nowMs() < deadline) sleepMs(0.2);
    sleepMs(0.7 * i);
    const int victim = i % kRanks;
    const std::string pid = "pid " + std::to_string(processes.pid(victim)) + ")";
    const double killedAt = nowMs();
    processes.signal(victim, SIGKILL);
    ASSERT_EQ(checkSurvivors(processes.join(), victim, weftRemoteError, pid, killedAt), "")
        << "round " << i << ", victim " << victim;
  }
}

class ShardEnd : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Worlds, ShardEnd, ::testing::Values(Kind::Threads, Kind::Processes),
                         [](const auto& p) { return weft::testing::nameOf(p.param); });
const Scheme kZero1{"zero1", {1, 1, 0}, false};

// Rank 1 stays in backward while another of its threads aborts.
TEST_P(ShardEnd, AbortFromAnotherThreadEndsAllSteps) {
  const World world{GetParam(), kRanks, "auto", 60000};
  const std::vector<std::string> lines = run(world, [](const Rank& r) -> std::string {
    Steps steps;
    Shard shard(steps, r, configOf(kZero1));
    if (!shard.start()) return steps.failed();
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "all have started");
    std::thread aborter;
    if (r.rank == 1)
      aborter = std::thread([&] {
        sleepMs(50);
        weftShardAbort(shard);
      });
    const double from = nowMs();
    const weftResult_t result = trainUntilError(shard, shard, argsOf(kZero1), [&](int step) {
      if (r.rank == 1 && step == 1) sleepMs(100);
    });
    const double took = nowMs() - from;
    const std::string text = weftGetLastError(nullptr);
    if (aborter.joinable()) aborter.join();
    steps.gives(weftAborted, result, "train");
    steps.expect(text.find("aborted by rank 1") != std::string::npos, text);
    steps.expect(took < 200 + 2 * kPromptMs, "took " + std::to_string(took) + " ms");
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "the communicator it was made of");
    return steps.failed();
  });
  EXPECT_EQ(failuresIn(lines), "");
}

// Rank 3 destroys its shard in backward.
TEST_P(ShardEnd, DestroyInMidStepIsPromptAndToldToAll) {
  const World world{GetParam(), kRanks, "auto", 60000};
  const std::vector<std::string> lines = run(world, [](const Rank& r) -> std::string {
    Steps steps;
    const double from = nowMs();
    {
      Shard shard(steps, r, configOf(kZero1));
      if (!shard.start()) return steps.failed();
      if (r.rank == 3) {
        shard.step(0, argsOf(kZero1));
        const weftStepArgs_t args = argsOf(kZero1);
        steps.ok(weftStepBegin(shard, &args), "begin");
        shard.addGradient(0, kBias);
        steps.ok(weftGradReady(shard, kBias), "ready");
      } else {
        const weftResult_t result = trainUntilError(shard, shard, argsOf(kZero1), [](int) {});
        steps.expect(result == weftAborted || result == weftRemoteError, "not aborted");
        const std::string text = weftGetLastError(nullptr);
        steps.expect(text.find("rank 3") != std::string::npos, text);
      }
    }
    steps.expect(nowMs() - from < 3 * kPromptMs, "took " + std::to_string(nowMs() - from) + " ms");
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "the communicator it was made of");
    Shard again(steps, r, configOf(kZero1));
    if (again.start()) again.step(0, argsOf(kZero1));
    return steps.failed();
  });
  EXPECT_EQ(failuresIn(lines), "");
}

// All of them, with everything in flight.
TEST_P(ShardEnd, DestroyWithoutWaitLeavesTheCommunicator) {
  const std::string failed = failures({GetParam(), kRanks}, [](const Rank& r) -> std::string {
    Steps steps;
    for (const Degrees& d : {Degrees{1, 1, 0}, Degrees{0, 0, 0}, Degrees{2, 2, 2}}) {
      Shard shard(steps, r, shardConfig(weftFloat32, d));
      if (!shard.start()) return steps.failed();
      const weftStepArgs_t args = stepArgs();
      steps.ok(weftStepBegin(shard, &args), "begin");
      steps.ok(weftBarrier(r.comm, nullptr, nullptr), "all have started");
      shard.backward(r.rank);
      steps.ok(weftGradDone(shard), "done");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// Nobody else takes part in the gathering.
TEST_P(ShardEnd, DestroyUnderAPrefetchIsPrompt) {
  const World world{GetParam(), kRanks, "auto", 60000};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    Steps steps;
    const double from = nowMs();
    {
      Shard shard(steps, r, shardConfig(weftFloat32, {0, 0, 0}));
      if (!shard.start()) return steps.failed();
      steps.ok(weftBarrier(r.comm, nullptr, nullptr), "all have started");
      if (r.rank == 0) steps.ok(weftParamPrefetch(shard, 0), "prefetch");
    }
    steps.expect(nowMs() - from < 3 * kPromptMs, "took " + std::to_string(nowMs() - from) + " ms");
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "the communicator it was made of");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// A rank that never comes is named at the deadline.
TEST_P(ShardEnd, LateRankIsNamedAtTheDeadline) {
  const World world{GetParam(), 3, "auto", 2000};
  Shared<Arrivals> told;
  const std::vector<std::string> lines = run(world, [&](const Rank& r) -> std::string {
    Steps steps;
    Shard shard(steps, r, configOf(kZero1));
    if (!shard.start()) return steps.failed();
    if (r.rank == 1) {
      steps.expect(told->await(2), "they hear nothing");
      return steps.failed();
    }
    const weftResult_t result = trainUntilError(shard, shard, argsOf(kZero1), [](int) {});
    told->arrive();
    const std::string text = weftGetLastError(nullptr);
    steps.gives(weftTimeout, result, "train");
    steps.expect(text.find("rank 1 did not call it") != std::string::npos, text);
    return steps.failed();
  });
  EXPECT_EQ(failuresIn(lines), "");
}

TEST(ShardFork, ChildIsTold) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends forked children of threaded processes that start threads";
#endif
  weftComm_t comm = nullptr;
  ASSERT_EQ(weftCommInitAll(&comm, 1, nullptr), weftSuccess);
  const std::vector<weftParam_t> model = smallModel();
  weftShard_t shard = nullptr;
  ASSERT_EQ(weftShardCreate(&shard, comm, model.data(), model.size(), nullptr), weftSuccess);
  const auto texts = forkRanks(1, [&](int) -> std::string {
    Steps steps;
    steps.gives(weftInvalidUsage, weftStepBegin(shard, nullptr), "begin");
    steps.gives(weftInvalidUsage, weftShardDestroy(shard), "destroy");
    return steps.failed();
  });
  EXPECT_EQ(failuresIn(texts), "");
  EXPECT_EQ(weftShardDestroy(shard), weftSuccess);
  EXPECT_EQ(weftCommDestroy(comm), weftSuccess);
}

}  // namespace
}  // namespace weft::testing
