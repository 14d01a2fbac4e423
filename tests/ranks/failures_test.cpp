// SPDX-License-Identifier: Apache-2.0
// Ranks that are killed, stopped, late or gone: every other rank gets one error that names the
// culprit, soon, and nothing is left behind.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <sstream>
#include <thread>

#include "traffic.h"
#include "world.h"

namespace weft::testing {
namespace {

// "rank 2 (host ", then ", pid 4711)": how errors name a rank.
bool names(const std::string& text, int rank, pid_t pid) {
  return text.find("rank " + std::to_string(rank) + " (host ") != std::string::npos &&
         text.find("pid " + std::to_string(pid) + ")") != std::string::npos;
}

// What a rank saw of a failure, as it goes through a pipe.
struct Seen {
  double at = 0;  // nowMs()
  int result = weftSuccess;
  std::string text;
};
std::string write(weftResult_t result, weftComm_t comm) {
  std::ostringstream line;
  line << std::fixed << nowMs() << ' ' << static_cast<int>(result) << ' ' << weftGetLastError(comm);
  return line.str();
}
Seen read(const std::string& line) {
  Seen seen;
  std::istringstream in(line);
  in >> seen.at >> seen.result;
  std::getline(in, seen.text);
  return seen;
}

// Later calls and queries must say the same as the first.
std::string checkErrorStays(const Rank& r, const std::string& text) {
  const weftResult_t first = static_cast<weftResult_t>(read(text).result);
  if (weftBarrier(r.comm, nullptr, nullptr) != first) return "a later call says otherwise";
  weftResult_t async = weftSuccess;
  weftCommGetAsyncError(r.comm, &async);
  return async == first ? "" : "weftCommGetAsyncError says otherwise";
}

// Empty if every survivor's line is a remote error within time that names the victim.
std::string checkSurvivors(const std::vector<std::string>& lines, int victim, pid_t pid,
                           double killedAt) {
  for (std::size_t r = 0; r < lines.size(); ++r) {
    if (static_cast<int>(r) == victim) {
      if (lines[r] != "killed by signal 9") return "the victim: " + lines[r];
      continue;
    }
    const Seen seen = read(lines[r]);
    if (seen.result != weftRemoteError || !names(seen.text, victim, pid))
      return "rank " + std::to_string(r) + ": " + lines[r];
    if (seen.at - killedAt > kPromptMs)
      return "rank " + std::to_string(r) + " was told after " + std::to_string(seen.at - killedAt) +
             " ms: " + lines[r];
  }
  return "";
}

// Kills one rank of a world that is busy with all kinds of calls.
std::string killOne(int ranks, std::uint64_t seed) {
  Shared<Arrivals> joined;
  const World world{Kind::Processes, ranks};
  Processes processes(world, [&](const Rank& r) -> std::string {
    Traffic traffic(seed);
    joined->arrive();
    weftResult_t result = weftSuccess;
    while (result == weftSuccess) result = traffic.next(r);
    const std::string line = write(result, r.comm);
    const std::string failed = checkErrorStays(r, line);
    return failed.empty() ? line : failed;
  });
  std::mt19937_64 random(seed);
  const int victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
  EXPECT_TRUE(joined->await(ranks));
  sleepMs(static_cast<double>(random() % 15000) / 1000.0);
  const pid_t pid = processes.pid(victim);
  const double killedAt = nowMs();
  processes.signal(victim, SIGKILL);
  return checkSurvivors(processes.join(), victim, pid, killedAt);
}

// A process with /tmp and /dev/shm of its own, if the machine allows, that adopts orphans.
void enterEmptyRoom() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return;
  ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  ::mount("tmpfs", "/tmp", "tmpfs", 0, nullptr);
  ::mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr);
}
std::string listOf(const char* folder) {
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    all += entry.path().string() + "\n";
  return all;
}

// Calls `body` in an empty room; afterwards the room must be as empty as before.
std::string leavesNothing(const std::function<std::string()>& body) {
  const std::vector<std::string> texts = forkRanks(1, [&](int) -> std::string {
    enterEmptyRoom();
    const std::string before = listOf("/tmp") + listOf("/dev/shm");
    if (std::string failed = body(); !failed.empty()) return failed;
    if (::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) return "a process is left";
    const std::string after = listOf("/tmp") + listOf("/dev/shm");
    return after == before ? "" : "left over: " + after;
  });
  return texts[0];
}

class Kill : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Kill, ::testing::Values(2, 3, 4));

// How often to kill where the test by default does so `usual` times.
int killsWanted(int usual) {
  const char* wanted = std::getenv("RANKS_TEST_KILLS");
  return wanted != nullptr ? std::atoi(wanted) : usual / kSlowdown;
}

// 100 times in all.
TEST_P(Kill, AtARandomMomentIsToldToAllSurvivors) {
  const int times = killsWanted(GetParam() == 2 ? 40 : 30);
  const std::string failed = leavesNothing([&]() -> std::string {
    for (int i = 0; i < times; ++i) {
      const std::uint64_t seed = static_cast<std::uint64_t>(1000 * GetParam() + i);
      if (std::string one = killOne(GetParam(), seed); !one.empty())
        return "seed " + std::to_string(seed) + ": " + one;
    }
    return "";
  });
  EXPECT_EQ(failed, "");
}

// While the communicator is being made: from when the victim begins until it has been made for a
// while. All are told of it, and soon; but a victim that nobody has heard of yet is missed at the
// deadline, which is far enough for nobody else to be late.
std::string killWhileJoining(int ranks, std::uint64_t seed) {
  constexpr double kDeadlineMs = 5000 * kSlowdown;
  std::mt19937_64 random(seed);
  const int victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
  Shared<std::atomic<bool>> victimBegins;
  // The courier's pipes must not stay open here, or nobody would see the end of rank 0.
  Processes processes(ranks, [&, courier = IdCourier(ranks)](int rank) -> std::string {
    weftUniqueId id;
    if (!courier.exchange(rank, &id).empty()) return write(weftRemoteError, nullptr);
    weftComm_t comm = nullptr;
    weftConfig_t config = configOf({Kind::Processes, ranks});
    config.initTimeoutMs = static_cast<int>(kDeadlineMs);
    if (rank == victim) victimBegins->store(true);
    weftResult_t result = weftCommInitRankConfig(&comm, ranks, id, rank, &config);
    if (result != weftSuccess) return write(result, nullptr);
    while (result == weftSuccess) result = weftBarrier(comm, nullptr, nullptr);
    return write(result, comm);
  });
  while (!victimBegins->load()) sleepMs(0.1);
  sleepMs(static_cast<double>(random() % (30000 * kSlowdown)) / 1000.0);
  const double killedAt = nowMs();
  processes.signal(victim, SIGKILL);
  const std::vector<std::string> lines = processes.join();
  for (std::size_t r = 0; r < lines.size(); ++r) {
    if (static_cast<int>(r) == victim) continue;
    const Seen seen = read(lines[r]);
    const bool told =
        seen.result == weftRemoteError && seen.at - killedAt < kDeadlineMs &&
        seen.text.find(", pid " + std::to_string(processes.pid(victim)) + ")") != std::string::npos;
    const bool missed = seen.result == weftTimeout &&
                        seen.text.find("waiting for 1 of ") != std::string::npos &&
                        seen.text.find("ranks: " + std::to_string(victim)) != std::string::npos;
    // Before it has said who it is, it has no pid.
    const bool unknown = seen.result == weftRemoteError &&
                         seen.text.find("rank " + std::to_string(victim) +
                                        " died or closed its connection") != std::string::npos;
    // Whoever knocks after the end of rank 0, killed or told, finds nobody.
    const bool ended = victim == 0 || read(lines[0]).at < seen.at;
    const bool closed = ended && seen.text.find("nobody listens") != std::string::npos;
    if (!told && !unknown && !missed && !closed)
      return "rank " + std::to_string(r) + " after " + std::to_string(seen.at - killedAt) +
             " ms, victim " + std::to_string(victim) + ": " + lines[r];
  }
  return "";
}
TEST(KillWhileJoining, IsToldToAllSurvivors) {
  const int times = killsWanted(12);
  for (int i = 0; i < times; ++i) {
    const std::uint64_t seed = static_cast<std::uint64_t>(7000 + i);
    ASSERT_EQ(killWhileJoining(2 + i % 3, seed), "") << "seed " << seed;
  }
}

// A trainer has data loaders, which hold its sockets open, and memory that takes time to free.
TEST(KillOfATrainer, WithAChildAndMuchMemory) {
  Shared<Arrivals> grown, ready, told;
  Shared<std::atomic<pid_t>> child;
  Processes processes({Kind::Processes, 3}, [&](const Rank& r) -> std::string {
    std::vector<char> memory;
    if (r.rank == 1) {
      memory.assign((std::size_t{512} << 20) / kSlowdown, 1);
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::pause();
        ::_exit(0);
      }
      child->store(pid);
    }
    if (!grown->meet(3)) return "they do not come";
    weftResult_t result = weftBarrier(r.comm, nullptr, nullptr);
    ready->arrive();
    while (result == weftSuccess) result = weftBarrier(r.comm, nullptr, nullptr);
    told->arrive();
    return write(result, r.comm);
  });
  ASSERT_TRUE(ready->await(3));
  const pid_t pid = processes.pid(1);
  const double killedAt = nowMs();
  processes.signal(1, SIGKILL);
  EXPECT_TRUE(told->await(2));
  EXPECT_EQ(::kill(child->load(), SIGKILL), 0) << "it has not lived on";
  const std::vector<std::string> lines = processes.join();
  EXPECT_EQ(checkSurvivors(lines, 1, pid, killedAt), "");
}

TEST(Stopped, RankIsNamedAtTheDeadlineAndFailsToo) {
  Shared<Arrivals> joined, told;
  Processes processes({Kind::Processes, 3}, [&](const Rank& r) -> std::string {
    joined->arrive();
    weftOpts_t opts = WEFT_OPTS_INITIALIZER;
    opts.timeoutMs = 2000;
    weftResult_t result = weftSuccess;
    while (result == weftSuccess) result = weftBarrier(r.comm, nullptr, &opts);
    told->arrive();
    return write(result, r.comm);
  });
  ASSERT_TRUE(joined->await(3));
  sleepMs(20);
  const pid_t pid = processes.pid(1);
  processes.signal(1, SIGSTOP);
  EXPECT_TRUE(told->await(2));
  processes.signal(1, SIGCONT);
  const std::vector<std::string> lines = processes.join();
  for (int r = 0; r < 3; ++r) {
    const Seen seen = read(lines[static_cast<std::size_t>(r)]);
    EXPECT_EQ(seen.result, weftTimeout) << lines[static_cast<std::size_t>(r)];
    EXPECT_TRUE(names(seen.text, 1, pid)) << seen.text;
    if (r == 1) continue;
    EXPECT_NE(seen.text.find("is stopped (by a signal"), std::string::npos) << seen.text;
  }
}

TEST(Stopped, RankThatGoesOnInTimeHarmsNobody) {
  Shared<Arrivals> joined;
  Shared<std::atomic<bool>> enough;
  Processes processes({Kind::Processes, 3}, [&](const Rank& r) -> std::string {
    joined->arrive();
    for (float stop = 0; stop == 0;) {
      const float mine = enough->load() ? 1.0f : 0.0f;
      const weftResult_t result =
          weftAllReduce(&mine, &stop, 1, weftFloat, weftSum, r.comm, nullptr, nullptr);
      if (result != weftSuccess) return outcome(result, r.comm);
    }
    return "";
  });
  ASSERT_TRUE(joined->await(3));
  for (int i = 0; i < 3; ++i) {
    processes.signal(i, SIGSTOP);
    sleepMs(150);
    processes.signal(i, SIGCONT);
    sleepMs(20);
  }
  enough->store(true);
  EXPECT_EQ(failuresIn(processes.join()), "");
}

class Late : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Worlds, Late, ::testing::Values(Kind::Threads, Kind::Processes),
                         [](const auto& p) { return nameOf(p.param); });

TEST_P(Late, RankThatNeverEntersIsNamedWithWhatItDidLast) {
  Shared<Arrivals> begun, told;
  const std::vector<std::string> lines = run({GetParam(), 4}, [&](const Rank& r) -> std::string {
    float value = 1;
    const weftResult_t first =
        weftBroadcast(&value, &value, 1, weftFloat, 0, r.comm, nullptr, nullptr);
    if (first != weftSuccess) return outcome(first, r.comm);
    if (!begun->meet(4)) return "they do not come";
    if (r.rank == 2) return told->await(3) ? "" : "they hear nothing";
    weftOpts_t opts = WEFT_OPTS_INITIALIZER;
    opts.timeoutMs = 1000;
    opts.label = "layer 7";
    const weftResult_t result =
        weftAllReduce(&value, &value, 1, weftFloat, weftSum, r.comm, nullptr, &opts);
    told->arrive();
    return outcome(result, r.comm);
  });
  ASSERT_EQ(lines.size(), 4u);
  for (const int r : {0, 1, 3}) {
    const std::string& line = lines[static_cast<std::size_t>(r)];
    EXPECT_EQ(line.rfind("timeout: all_reduce(count=1, float, sum) #2", 0), 0u) << line;
    EXPECT_NE(line.find("layer 7"), std::string::npos) << line;
    EXPECT_NE(line.find("rank 2 did not call it; rank 2 (host "), std::string::npos) << line;
    EXPECT_NE(line.find("last did broadcast(count=1, float, root=0) #1"), std::string::npos)
        << line;
    EXPECT_NE(line.find("fix: "), std::string::npos) << line;
  }
  EXPECT_EQ(lines[2], "");
}

TEST_P(Late, AbortEndsTheWaitsOfAllRanks) {
  const World world{GetParam(), 4, "auto", 60000};
  const std::vector<std::string> lines = run(world, [](const Rank& r) -> std::string {
    if (r.rank == 3) {  // never calls: aborts from where it is
      sleepMs(100);
      weftCommAbort(r.comm);
      return write(weftBarrier(r.comm, nullptr, nullptr), r.comm);
    }
    return write(weftBarrier(r.comm, nullptr, nullptr), r.comm);
  });
  ASSERT_EQ(lines.size(), 4u);
  double first = read(lines[0]).at, last = first;
  for (const std::string& line : lines) {
    const Seen seen = read(line);
    EXPECT_EQ(seen.result, weftAborted) << line;
    EXPECT_NE(seen.text.find("was aborted by rank 3"), std::string::npos) << line;
    first = std::min(first, seen.at);
    last = std::max(last, seen.at);
  }
  EXPECT_LE(last - first, kPromptMs);
}

TEST_P(Late, AbortFromAnotherThreadOfAWaitingRank) {
  const World world{GetParam(), 3, "auto", 60000};
  const std::vector<std::string> lines = run(world, [](const Rank& r) -> std::string {
    if (r.rank == 2) {
      sleepMs(600);
      return write(weftBarrier(r.comm, nullptr, nullptr), r.comm);
    }
    std::thread aborter;
    if (r.rank == 0)
      aborter = std::thread([&] {
        sleepMs(100);
        weftCommAbort(r.comm);
      });
    const double from = nowMs();
    const std::string line = write(weftBarrier(r.comm, nullptr, nullptr), r.comm);
    if (aborter.joinable()) aborter.join();
    return nowMs() - from < 100 + kPromptMs ? line : "abort took too long";
  });
  for (const std::string& line : lines) {
    EXPECT_EQ(read(line).result, weftAborted) << line;
    EXPECT_NE(line.find("was aborted by rank 0"), std::string::npos) << line;
  }
}

// Gathers on a communicator of its own until rank `aborter` aborts it, and looks whether anybody
// still writes to the result then.
std::string gatherUntilAborted(const Rank& r, int aborter, double afterMs, std::span<char> out) {
  weftComm_t comm = nullptr;
  weftResult_t result = weftCommSplit(r.comm, 0, 0, &comm, nullptr);
  if (result == weftSuccess) result = weftBarrier(r.comm, nullptr, nullptr);  // all have it
  if (result != weftSuccess) return outcome(result, r.comm);
  std::thread thread;
  if (r.rank == aborter)
    thread = std::thread([&] {
      sleepMs(afterMs);
      weftCommAbort(comm);
    });
  const std::size_t count = out.size() / static_cast<std::size_t>(r.ranks);
  const std::vector<char> mine(count, static_cast<char>(r.rank));
  while (result == weftSuccess)
    result = weftAllGather(mine.data(), out.data(), count, weftInt8, comm, nullptr, nullptr);
  std::memset(out.data(), 'x', out.size());
  sleepMs(2);
  const bool untouched =
      out[0] == 'x' && std::memcmp(out.data(), out.data() + 1, out.size() - 1) == 0;
  if (thread.joinable()) thread.join();
  weftCommDestroy(comm);
  if (result != weftAborted) return outcome(result, nullptr);
  return untouched ? "" : "written to after the call had returned";
}

TEST_P(Late, BuffersOfAnAbortedCallAreTheCallersAgain) {
  const std::string failed = failures({GetParam(), 4}, [](const Rank& r) -> std::string {
    std::mt19937 random(1);  // the same on all ranks
    constexpr std::size_t kBytes = 8 << 20;
    std::vector<char> own(kBytes);
    void* shared = nullptr;
    if (weftMemAlloc(&shared, kBytes) != weftSuccess) return outcome(weftSystemError, nullptr);
    std::string text;
    for (int i = 0; i < 40 / kSlowdown && text.empty(); ++i) {
      const std::span<char> out =
          i % 2 == 0 ? std::span(own) : std::span(static_cast<char*>(shared), kBytes);
      const double afterMs = static_cast<double>(random() % 8000) / 1000;
      text = gatherUntilAborted(r, i % r.ranks, afterMs, out);
    }
    weftMemFree(shared);
    return text;
  });
  EXPECT_EQ(failed, "");
}

TEST_P(Late, DestroyWithQueuedWorkIsBounded) {
  const World world{GetParam(), 2, "auto", 60000};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    if (r.rank == 1) {  // waits for a rank that destroys its end
      const weftResult_t result = weftBarrier(r.comm, nullptr, nullptr);
      return result == weftAborted || result == weftRemoteError || result == weftMismatch
                 ? ""
                 : "rank 1: " + outcome(result, r.comm);
    }
    weftStream_t stream = nullptr;
    weftStreamCreate(&stream);
    std::vector<float> data(1000);
    for (int i = 0; i < 50; ++i)
      weftAllReduce(data.data(), data.data(), 1000, weftFloat, weftSum, r.comm, stream, nullptr);
    const double from = nowMs();
    const weftResult_t destroyed = weftCommDestroy(r.comm);
    const weftResult_t queued = weftStreamSynchronize(stream);
    const double took = nowMs() - from;
    weftStreamDestroy(stream);
    if (destroyed != weftSuccess) return outcome(destroyed, nullptr);
    if (queued == weftSuccess) return "queued calls succeeded alone";
    return took < 2 * kPromptMs ? "" : "took " + std::to_string(took) + " ms";
  });
  EXPECT_EQ(failed, "");
}

// A rank that destroys its end while others still call is to blame, and they learn it at once.
TEST_P(Late, DestroyedEndIsNamed) {
  const std::vector<std::string> lines = run({GetParam(), 3}, [](const Rank& r) -> std::string {
    if (r.rank == 1) return write(weftBarrier(r.comm, nullptr, nullptr), r.comm);
    weftResult_t result = weftBarrier(r.comm, nullptr, nullptr);
    if (r.rank == 0) {
      weftCommDestroy(r.comm);
      return "";
    }
    while (result == weftSuccess) result = weftBarrier(r.comm, nullptr, nullptr);
    return write(result, r.comm);
  });
  const Seen seen = read(lines[2]);
  EXPECT_EQ(seen.result, weftRemoteError) << lines[2];
  EXPECT_NE(seen.text.find("has destroyed its end"), std::string::npos) << lines[2];
}

// The same of a message that will not come, and of one that nobody will take.
TEST_P(Late, DestroyedEndOfATransferIsNamed) {
  for (const bool receives : {true, false}) {
    const std::vector<std::string> lines = run({GetParam(), 3}, [&](const Rank& r) -> std::string {
      weftResult_t result = weftBarrier(r.comm, nullptr, nullptr);
      if (result != weftSuccess || r.rank == 2) return write(result, r.comm);
      if (r.rank == 0) {
        weftCommDestroy(r.comm);
        return "";
      }
      std::vector<char> data(1 << 20);
      const double from = nowMs();
      result = receives ? weftRecv(data.data(), data.size(), weftInt8, 0, r.comm, nullptr, nullptr)
                        : weftSend(data.data(), data.size(), weftInt8, 0, r.comm, nullptr, nullptr);
      return nowMs() - from < kPromptMs ? write(result, r.comm) : "too late";
    });
    const Seen seen = read(lines[1]);
    EXPECT_EQ(seen.result, weftRemoteError) << lines[1];
    EXPECT_EQ(seen.text.rfind(" rank 0 (host ", 0), 0u) << lines[1];
    EXPECT_NE(seen.text.find("has destroyed its end"), std::string::npos) << lines[1];
    EXPECT_NE(seen.text.find("fix: "), std::string::npos) << lines[1];
  }
}

// A leaver is not to blame for what it had sent.
TEST_P(Late, WhatALeaverHadSentStillArrives) {
  for (int i = 0; i < 20 / kSlowdown; ++i) {
    const std::string failed = failures({GetParam(), 3}, [&](const Rank& r) -> std::string {
      std::vector<char> data(r.rank == 0 ? 0 : 200000, static_cast<char>(r.rank)), both(400000);
      if (r.rank != 0)
        return outcome(weftSend(data.data(), data.size(), weftInt8, 0, r.comm, nullptr, nullptr),
                       r.comm);
      sleepMs(i);
      weftGroupStart();
      weftRecv(both.data(), 200000, weftInt8, 1, r.comm, nullptr, nullptr);
      weftRecv(both.data() + 200000, 200000, weftInt8, 2, r.comm, nullptr, nullptr);
      const weftResult_t result = weftGroupEnd();
      if (result != weftSuccess) return outcome(result, r.comm);
      return both.front() == 1 && both.back() == 2 ? "" : "wrong bytes";
    });
    ASSERT_EQ(failed, "") << "round " << i;
  }
}

// exit() without destroy, in the middle of the others' work.
TEST(Gone, RankThatExitsIsNamedWithItsCode) {
  Processes processes({Kind::Processes, 3}, [](const Rank& r) -> std::string {
    weftResult_t result = weftBarrier(r.comm, nullptr, nullptr);
    if (r.rank == 1) ::exit(3);
    while (result == weftSuccess) result = weftBarrier(r.comm, nullptr, nullptr);
    return write(result, r.comm);
  });
  const pid_t pid = processes.pid(1);
  const std::vector<std::string> lines = processes.join();
  EXPECT_EQ(lines[1], "exit 3");
  for (const int r : {0, 2}) {
    const Seen seen = read(lines[static_cast<std::size_t>(r)]);
    EXPECT_EQ(seen.result, weftRemoteError);
    EXPECT_TRUE(names(seen.text, 1, pid)) << seen.text;
  }
}

// Whoever has made its last call may go, destroyed or not, while others are still in theirs.
class LastCall : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(HowItEnds, LastCall, ::testing::Bool(), [](const auto& p) {
  return std::string(p.param ? "destroyed" : "exited");
});
TEST_P(LastCall, ThenTheEndOfARankHarmsNobody) {
  const bool destroys = GetParam();
#if defined(__SANITIZE_THREAD__)
  if (!destroys) GTEST_SKIP() << "to ThreadSanitizer, threads that _exit ends are leaks";
#endif
  for (int kind = 0; kind < Traffic::kKinds; ++kind) {
    for (const std::size_t count : {1u, 3000u, 100000u}) {
      const std::string failed = failures({Kind::Processes, 3}, [&](const Rank& r) -> std::string {
        Traffic traffic(1);
        weftResult_t result = weftBarrier(r.comm, nullptr, nullptr);
        if (result == weftSuccess) result = traffic.call(kind, count, r);
        if (result == weftSuccess && !destroys) ::_exit(0);
        return outcome(result, r.comm);
      });
      ASSERT_EQ(failed, "") << "kind " << kind << " count " << count;
    }
  }
}

}  // namespace
}  // namespace weft::testing
