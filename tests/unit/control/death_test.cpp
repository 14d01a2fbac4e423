// SPDX-License-Identifier: Apache-2.0
// Ranks that share no memory are told who has died, is stopped or is cut off.
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cstdlib>

#include "remote_world.h"

namespace weft::control {
namespace {

using namespace weft::test;

// All but `except` have said the same, which is returned.
std::string oneError(const Processes& p, std::uint32_t except) {
  const std::uint32_t first = except == 0 ? 1 : 0;
  EXPECT_TRUE(eventually(20000, [&] {
    for (std::uint32_t r = 0; r < p.pids.size(); ++r) {
      if (r != except && p.common->stage[r].load() < 2) return false;
    }
    return true;
  }));
  for (std::uint32_t r = 0; r < p.pids.size(); ++r) {
    if (r == except) continue;
    EXPECT_EQ(p.said(r), p.said(first)) << "rank " << r;
  }
  return p.said(first);
}

double worstMs(const Processes& p, std::uint32_t except, double since) {
  double worst = 0;
  for (std::uint32_t r = 0; r < p.pids.size(); ++r) {
    if (r != except) worst = std::max(worst, p.common->at[r] - since);
  }
  return worst;
}

void stuck(Member& m, std::uint32_t waitingFor, int timeoutMs = 20000) {
  m.call(planOf(10));
  m.reached(1);
  (void)m.stuckIn(planOf(20), timeoutMs, waitingFor);
  m.reached(2);
}

void expectKilledIsNamed(std::uint32_t victim) {
  const Processes p(4, [&](Member& m) { stuck(m, victim); });
  ASSERT_TRUE(p.allReached(1));
  const double start = nowMs();
  p.harm(victim, SIGKILL);
  const std::string said = oneError(p, victim);
  expectHas(said, text("rank ", victim, " (host h", victim, ", pid ", p.pids[victim], ")"));
  expectHas(said, "has ended: its connection closed");
  expectHas(said, "during all_reduce(count=20, float, sum) #2");
  const double worst = worstMs(p, victim, start);
  ::testing::Test::RecordProperty("latency_ms", static_cast<int>(worst));
  EXPECT_LT(worst, kPromptMs);
}

TEST(FarDeath, AKilledRankIsNamedByAll) { expectKilledIsNamed(2); }

TEST(FarDeath, AKilledRankZeroIsNamedByAll) { expectKilledIsNamed(0); }

// A sibling that has seen how it ended says it before the server does.
TEST(FarDeath, ABetterWordIsPreferred) {
  const Processes p(4, [](Member& m) {
    if (m.rank != 3) return stuck(m, 2);
    m.call(planOf(10));
    m.reached(1);
    EXPECT_TRUE(m.awaitGo(1));
    m.note(m.watch->declare(Status::error(Code::RemoteError, "rank 2 was killed by SIGKILL")));
    m.reached(2);
  });
  ASSERT_TRUE(p.allReached(1));
  p.harm(2, SIGKILL);
  p.common->go.store(1);
  EXPECT_EQ(oneError(p, 2), "rank 2 was killed by SIGKILL");
}

void expectStoppedIsSilent(std::uint32_t victim) {
  const Processes p(3, [&](Member& m) { stuck(m, victim, m.rank == victim ? 60000 : 4500); });
  ASSERT_TRUE(p.allReached(1));
  p.harm(victim, SIGSTOP);
  const std::string said = oneError(p, victim);
  expectHas(said, "timed out after 4500 ms");
  expectHas(said, text("rank ", victim, " (host h", victim, ", pid ", p.pids[victim],
                       ") does not answer for"));
  expectHas(said, "stopped or overloaded");
}

TEST(FarDeath, AStoppedRankIsNotDeadAndIsNamedAsSilent) { expectStoppedIsSilent(1); }

TEST(FarDeath, AStoppedRankZeroIsNotDeadAndIsNamedAsSilent) { expectStoppedIsSilent(0); }

TEST(FarDeath, AStoppedRankMayGoOn) {
  const Processes p(3, [](Member& m) {
    m.call(planOf(10));
    m.reached(1);
    m.watch->enter(planOf(20), 20000, nullptr);
    while (m.common->go.load() == 0) {
      const Status status = m.watch->trouble(1);
      if (!status.ok()) return m.note(status);
      std::this_thread::sleep_for(milliseconds(1));
    }
    m.watch->leave();
    m.note(m.watch->lookAround());
    m.reached(2);
  });
  ASSERT_TRUE(p.allReached(1));
  p.harm(1, SIGSTOP);
  std::this_thread::sleep_for(milliseconds(300));
  p.harm(1, SIGCONT);
  p.common->go.store(1);
  ASSERT_TRUE(p.allReached(2));
  EXPECT_EQ(oneError(p, 1), "");
}

// A process that ends after its part of the last call is not missed in it, but later.
void expectExitMattersLater(std::uint32_t leaver) {
  const Processes p(3, [&](Member& m) {
    m.call(planOf(10));
    if (m.rank == leaver) {
      m.reached(2);
      std::exit(0);
    }
    m.watch->enter(planOf(10), 20000, nullptr);
    m.reached(1);
    // Its call #1 is done: whoever waits in #1 waits for others.
    m.watch->leave();
    EXPECT_TRUE(eventually(5000, [&] { return !m.watch->lookAround().ok(); }));
    m.note(m.watch->firstError());
    m.reached(2);
  });
  const std::string said = oneError(p, leaver);
  expectHas(said, text("rank ", leaver, " (host h", leaver));
  expectHas(said, "has ended");
}

TEST(FarDeath, AnExitWithoutDestroyIsNamed) { expectExitMattersLater(1); }

TEST(FarDeath, TheExitOfRankZeroWithoutDestroyIsNamed) { expectExitMattersLater(0); }

TEST(FarDeath, AnExitAfterOnesPartIsNotMissedInThatCall) {
  const Processes p(3, [](Member& m) {
    m.call(planOf(10));
    m.reached(1);
    if (m.rank == 1) {
      EXPECT_TRUE(m.awaitGo(1));
      std::exit(0);
    }
    // Still in call #1, which rank 1 has left.
    m.pages.own().control().inCall.store(1);
    const Clock::time_point until = Clock::now() + milliseconds(300);
    Status status;
    while (status.ok() && Clock::now() < until) {
      status = m.watch->trouble(0);
      std::this_thread::sleep_for(milliseconds(1));
    }
    m.note(status);
    m.reached(2);
  });
  ASSERT_TRUE(p.allReached(1));
  p.common->go.store(1);
  EXPECT_EQ(oneError(p, 1), "");
}

// Rank 0 had done its part and is not missed itself; but of rank 1 nobody can tell any more.
TEST(FarDeath, OfTwoDeathsThatOfRankZeroIsNoticed) {
  const Processes p(3, [](Member& m) {
    if (m.rank == 0) m.call(planOf(10));
    if (m.rank != 2) {
      m.reached(1);
      return (void)m.awaitGo(1);
    }
    m.watch->enter(planOf(10), 20000, nullptr);
    const transport::ControlPage& zero = *m.pages.control(0);
    Status status;
    while (status.ok()) {
      if (zero.callSeq.load() == 1 && zero.inCall.load() == 0) m.reached(1);
      status = m.watch->trouble(1);
      std::this_thread::sleep_for(milliseconds(1));
    }
    m.note(status);
    m.reached(2);
  });
  ASSERT_TRUE(p.allReached(1));
  p.harm(0, SIGKILL);
  p.harm(1, SIGKILL);
  ASSERT_TRUE(p.reached(2, 2));
  expectHas(p.said(2), text("rank 0 (host h0, pid ", p.pids[0], "), who tells"));
  expectHas(p.said(2), "whether rank 1 is still there nobody can tell");
}

TEST(ControlLinkDeath, WhoHasDiedIsNotAwaitedInAGathering) {
  Processes p(3, [](Member& m) {
    m.reached(1);
    if (m.rank == 1) (void)m.awaitGo(1);
    std::vector<std::vector<std::byte>> all;
    m.note(m.link->gather({}, &all, Deadline::in(20000)));
    m.reached(2);
  });
  ASSERT_TRUE(p.allReached(1));
  p.harm(1, SIGKILL);
  expectHas(oneError(p, 1), text("rank 1 (host h1, pid ", p.pids[1], ") has ended"));
}

// The rank has given the server up and published the lost link itself, when the server does so.
TEST(ControlLinkDeath, ALostLinkCanBeRecoveredAlsoIfTheServerWasSlow) {
  Processes p(2, [](Member& m) {
    m.reached(1);
    (void)m.awaitGo(1);
    if (m.rank == 1) (void)m.watch->declare(Status::error(Code::LinkLost, "a link"));
    m.reached(2);
    std::vector<std::vector<std::byte>> all;
    const Status gathered = m.link->gather({}, &all, Deadline::in(20000));
    m.note(gathered.ok() ? m.watch->firstError() : gathered);
    m.reached(3);
  });
  ASSERT_TRUE(p.allReached(1));
  p.harm(0, SIGSTOP);
  p.common->go = 1;
  EXPECT_TRUE(p.reached(1, 2));
  p.harm(0, SIGCONT);
  EXPECT_TRUE(p.allReached(3));
  for (const std::uint32_t r : {0u, 1u}) EXPECT_EQ(p.said(r), "a link") << "rank " << r;
}

// The server needs a descriptor for each rank: rank 0 says so, and all end with that.
TEST(ControlLinkLimits, RankZeroWithoutDescriptorsIsNamedByAll) {
  const Processes p(
      3, [](Member&) {}, 1,
      [](Common&, std::uint32_t rank) {
        const rlimit files{70, 70};
        if (rank == 0) ::setrlimit(RLIMIT_NOFILE, &files);
      });
  ASSERT_TRUE(p.allReached(99));
  for (std::uint32_t r = 0; r < 3; ++r) EXPECT_EQ(p.said(r), p.said(0));
  expectHas(p.said(0), "control link of rank 0 (host h0, pid ");
  expectHas(p.said(0), " for the bootstrap), hard limit 70; fix: ulimit -Hn ");
}

}  // namespace
}  // namespace weft::control
