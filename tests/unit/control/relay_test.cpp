// SPDX-License-Identifier: Apache-2.0
// Hosts of several ranks: what they say and hear goes through a relay in the process of the first of
// them, and reaches them without it, too.
#include <signal.h>

#include <random>

#include "bootstrap/unique_id.h"
#include "control/bodies.h"
#include "control/bundles.h"
#include "net/socket.h"
#include "remote_world.h"

namespace weft::control {
namespace {

using namespace weft::test;

// Three hosts: the server's, with ranks 0 and 1, and two with relays, which ranks 2 and 4 lead.
constexpr std::uint32_t kRanks = 6, kPerHost = 2;

void await(const Processes& p, const std::vector<std::uint32_t>& ranks) {
  for (const std::uint32_t r : ranks) EXPECT_TRUE(p.reached(r, 2)) << "rank " << r;
}

// These have said the same, which is returned.
std::string verdictOf(const Processes& p, const std::vector<std::uint32_t>& ranks) {
  await(p, ranks);
  for (const std::uint32_t r : ranks) EXPECT_EQ(p.said(r), p.said(ranks[0])) << "rank " << r;
  return p.said(ranks[0]);
}

double worstMs(const Processes& p, const std::vector<std::uint32_t>& ranks, double since) {
  double worst = 0;
  for (const std::uint32_t r : ranks) worst = std::max(worst, p.common->at[r] - since);
  return worst;
}

Body stuckOn(std::uint32_t waitingFor, int timeoutMs = 20000) {
  return [=](Member& m) {
    m.call(planOf(10));
    m.reached(1);
    (void)m.stuckIn(planOf(20), m.rank == waitingFor ? 60000 : timeoutMs, waitingFor);
    m.reached(2);
  };
}

void expectKilledIsNamed(const std::vector<std::uint32_t>& victims,
                         const std::vector<std::uint32_t>& others) {
  const Processes p(kRanks, stuckOn(victims[0]), kPerHost);
  ASSERT_TRUE(p.allReached(1));
  const double start = nowMs();
  for (const std::uint32_t r : victims) p.harm(r, SIGKILL);
  const std::string said = verdictOf(p, others);
  expectHas(said, text("rank ", victims[0], " (host h", victims[0] / kPerHost, ", pid ",
                       p.pids[victims[0]], ")"));
  expectHas(said, "has ended: its connection closed");
  EXPECT_LT(worstMs(p, others, start), kPromptMs);
}

TEST(Relay, AKilledMateIsNamedByAll) { expectKilledIsNamed({3}, {0, 1, 2, 4, 5}); }

TEST(Relay, AKilledLeaderIsNamedByAll) { expectKilledIsNamed({2}, {0, 1, 3, 4, 5}); }

TEST(Relay, AKilledRankZeroIsNamedByAll) { expectKilledIsNamed({0}, {1, 2, 3, 4, 5}); }

TEST(Relay, AHostThatDiesIsNamedByItsLeader) { expectKilledIsNamed({2, 3}, {0, 1, 4, 5}); }

TEST(Relay, AMismatchNamesBothCalls) {
  const auto common = runThreads(
      kRanks, [](Member& m) { (void)m.stuckIn(planOf(m.rank == 5 ? 30 : 20), 20000, 5); },
      kPerHost);
  for (std::uint32_t r = 0; r < kRanks; ++r) EXPECT_STREQ(common->said[r], common->said[0]) << r;
  expectHas(common->said[0], "count=30");
  expectHas(common->said[0], "rank 5");
}

TEST(Relay, AnAbortReachesAll) {
  const auto common = runThreads(
      kRanks,
      [](Member& m) {
        if (m.rank == 3) return m.note(m.watch->abort());
        m.awaitFirstError();
      },
      kPerHost);
  for (std::uint32_t r = 0; r < kRanks; ++r) EXPECT_STREQ(common->said[r], common->said[0]) << r;
  expectHas(common->said[0], "aborted by rank 3");
}

// The others of its host still have a link: the relay, as long as the process lives, and then their own.
TEST(Relay, ALeaderMayLeaveFirst) {
  for (const bool exits : {false, true}) {
    const Processes p(
        kRanks,
        [exits](Member& m) {
          m.call(planOf(10));
          m.reached(1);
          if (m.rank == 2) {
            m.destroy();
            m.reached(2);
            EXPECT_TRUE(exits || m.awaitGo(1));
            return;
          }
          EXPECT_TRUE(m.awaitGo(1));
          EXPECT_TRUE(m.watch->firstError().ok()) << m.watch->firstError().text();
          if (m.rank == 3)
            m.note(m.watch->abort());
          else
            m.awaitFirstError();
          m.reached(2);
        },
        kPerHost);
    ASSERT_TRUE(p.allReached(1) && p.reached(2, 2));
    std::this_thread::sleep_for(milliseconds(200));
    p.common->go.store(1);
    expectHas(verdictOf(p, {0, 1, 3, 4, 5}), "aborted by rank 3");
  }
}

void expectStoppedIsSilent(std::uint32_t victim, const std::vector<std::uint32_t>& others) {
  const Processes p(kRanks, stuckOn(victim, 7000), kPerHost);
  ASSERT_TRUE(p.allReached(1));
  p.harm(victim, SIGSTOP);
  await(p, others);
  const std::string said = p.said(others[0]);
  expectHas(said, "timed out after 7000 ms");
  expectHas(said, text("rank ", victim, " (host h", victim / kPerHost, ", pid ", p.pids[victim],
                       ") does not answer for"));
  for (const std::uint32_t r : others)
    expectHas(p.said(r), text("rank ", victim, " (host h", victim / kPerHost));
}

TEST(Relay, AStoppedMateIsNamedAsSilent) { expectStoppedIsSilent(3, {0, 1, 2, 4, 5}); }

TEST(Relay, AStoppedLeaderIsNamedAsSilentAndItsMatesAreNot) {
  expectStoppedIsSilent(2, {0, 1, 3, 4, 5});
}

TEST(Relay, AStoppedRankZeroIsNamedAsSilent) { expectStoppedIsSilent(0, {1, 2, 3, 4, 5}); }

// Whoever is in no call asks nobody, so it does not notice that its relay is stuck.
TEST(Relay, AnIdleMateOfAStoppedLeaderHearsInItsNextCall) {
  const Processes p(
      kRanks,
      [](Member& m) {
        m.call(planOf(10));
        m.reached(1);
        EXPECT_TRUE(m.awaitGo(1));
        if (m.rank == 5) m.note(m.watch->abort());
        if (m.rank == 3) {
          EXPECT_TRUE(m.awaitGo(2));
          (void)m.stuckIn(planOf(20), 20000, 5);
        }
        if (m.rank != 3 && m.rank != 5) m.awaitFirstError();
        m.reached(2);
        EXPECT_TRUE(m.awaitGo(3));  // with the server
      },
      kPerHost);
  ASSERT_TRUE(p.allReached(1));
  p.harm(2, SIGSTOP);
  p.common->go.store(1);
  EXPECT_TRUE(p.reached(5, 2));
  const double start = nowMs();
  p.common->go.store(2);
  expectHas(verdictOf(p, {0, 1, 3, 4, 5}), "aborted by rank 5");
  EXPECT_LT(p.common->at[3] - start, kPromptMs);
  p.harm(2, SIGCONT);
  EXPECT_TRUE(p.reached(2, 2));
  EXPECT_EQ(p.said(2), p.said(3));
  p.common->go.store(3);
}

TEST(Relay, AStoppedLeaderMayGoOn) {
  for (const int ms : {300, 5500}) {
    const Processes p(
        kRanks,
        [](Member& m) {
          m.call(planOf(10));
          m.reached(1);
          m.watch->enter(planOf(20), 20000, nullptr);
          while (m.common->go.load() == 0) {
            const Status status = m.watch->trouble(2);
            if (!status.ok()) return m.note(status);
            std::this_thread::sleep_for(milliseconds(1));
          }
          m.watch->leave();
          EXPECT_TRUE(m.awaitGo(2));
          m.note(m.watch->lookAround());
          m.reached(2);
        },
        kPerHost);
    ASSERT_TRUE(p.allReached(1));
    p.harm(2, SIGSTOP);
    std::this_thread::sleep_for(milliseconds(ms));
    p.harm(2, SIGCONT);
    p.common->go.store(1);
    std::this_thread::sleep_for(milliseconds(300));
    p.common->go.store(2);
    ASSERT_TRUE(p.allReached(2)) << p.said(0) << p.said(3);
    EXPECT_EQ(verdictOf(p, {0, 1, 2, 3, 4, 5}), "");
  }
}

// A good-bye counts, though the relay does not take it on.
TEST(Relay, AMateOfAStoppedLeaderMayLeave) {
  const Processes p(
      kRanks,
      [](Member& m) {
        m.call(planOf(10));
        m.reached(1);
        EXPECT_TRUE(m.awaitGo(1));
        if (m.rank == 3) return m.destroy();
        EXPECT_TRUE(m.awaitGo(2));
        m.note(m.watch->lookAround());
        m.reached(2);
      },
      kPerHost);
  ASSERT_TRUE(p.allReached(1));
  p.harm(2, SIGSTOP);
  p.common->go.store(1);
  siginfo_t how{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(p.pids[3]), &how, WEXITED | WNOWAIT), 0);
  std::this_thread::sleep_for(milliseconds(300));
  p.harm(2, SIGCONT);
  p.common->go.store(2);
  EXPECT_EQ(verdictOf(p, {0, 1, 2, 4, 5}), "");
}

// An address where nobody listens, or not this one's relay: then the rank goes to the server itself.
TEST(Relay, ARankThatDoesNotFindItGoesWithout) {
  net::Socket nobody;
  net::Address address;
  int error = 0;
  ASSERT_TRUE(net::listenAt({.ip = {127, 0, 0, 1}, .port = 0}, &nobody, &address, &error).ok());
  nobody = {};
  bootstrap::IdContent content;
  content.addresses = {address};
  const bootstrap::UniqueId wrong = bootstrap::encodeId(content);
  const auto common = Common::create();
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      transport::Exchange exchange = exchangeOver(common, r, kRanks);
      const auto misled = [&](auto mine, auto* all) {
        WEFT_TRY(exchange(mine, all));
        if (r == 3 && (*all)[2].size() == wrong.bytes.size())
          std::ranges::copy(wrong.bytes, (*all)[2].begin());
        return Status();
      };
      Member member(common, r, kRanks, namesOf(kRanks, kPerHost), misled);
      ASSERT_TRUE(member.opened.ok()) << member.opened.text();
      if (r == 3) return member.note(member.watch->abort());
      member.awaitFirstError();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t r = 0; r < kRanks; ++r) EXPECT_STREQ(common->said[r], common->said[0]) << r;
  expectHas(common->said[0], "aborted by rank 3");
}

// Also by those who have just said something that nobody reads any more.
TEST(Relay, TheServersGoodbyeIsHeard) {
  for (int i = 0; i < 5; ++i) {
    const Processes p(
        kRanks,
        [](Member& m) {
          m.call(planOf(10));
          m.reached(1);
          EXPECT_TRUE(m.awaitGo(1));
          if (m.rank == 0) return m.destroy();
          while (m.common->go.load() < 2) {
            m.link->refresh(milliseconds(0));
            std::this_thread::sleep_for(std::chrono::microseconds(50));
          }
          m.note(m.link->ended(0));
          m.reached(2);
          EXPECT_TRUE(m.awaitGo(3));
        },
        kPerHost);
    ASSERT_TRUE(p.allReached(1));
    p.common->go.store(1);
    siginfo_t how{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(p.pids[0]), &how, WEXITED | WNOWAIT), 0);
    std::this_thread::sleep_for(milliseconds(50));
    p.common->go.store(2);
    EXPECT_EQ(verdictOf(p, {1, 2, 3, 4, 5}), "");
    p.common->go.store(3);
  }
}

TEST(Relay, GathersWhatAllGive) {
  runThreads(
      kRanks,
      [](Member& m) {
        for (std::uint32_t round = 0; round < 3; ++round) {
          const std::array<std::uint32_t, 2> mine{m.rank, round};
          std::vector<std::vector<std::byte>> all;
          const Status gathered =
              m.link->gather(std::as_bytes(std::span(mine)), &all, Deadline::in(20000));
          ASSERT_TRUE(gathered.ok()) << gathered.text();
          for (std::uint32_t r = 0; r < kRanks; ++r) {
            const std::array<std::uint32_t, 2> theirs{r, round};
            EXPECT_TRUE(std::ranges::equal(all[r], std::as_bytes(std::span(theirs))));
          }
        }
      },
      kPerHost);
}

TEST(Relay, NothingIsLeftOfIt) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  for (int i = 0; i < 5; ++i)
    runThreads(
        kRanks, [](Member& m) { m.call(planOf(10)); }, kPerHost);
  EXPECT_TRUE(eventually(20000, [] { return linkThreads() == 0; })) << linkThreads();
  EXPECT_TRUE(eventually(20000, [&] { return descriptors() <= before; }));
}

Bundles::Body bodyOf(std::uint32_t value) {
  return std::make_shared<const net::Bytes>(net::ByteWriter().number(value).take());
}

TEST(Bundles, WhatIsEqualTravelsOnce) {
  Bundles bundles;
  for (const std::uint32_t rank : {5u, 2u, 3u, 4u})
    bundles.add(rank, net::MessageType::Report, bodyOf(1));
  bundles.add(2, net::MessageType::Bye, bodyOf(1));
  const std::vector<net::Bytes> all = bundles.take();
  ASSERT_EQ(all.size(), 2u);
  RankSet ranks;
  net::Message message{};
  ASSERT_TRUE(decodeRelayed(all[0], 8, &ranks, &message));
  EXPECT_EQ(ranks, RankSet({{2, 5}}));
  EXPECT_EQ(message.type, net::MessageType::Report);
  EXPECT_EQ(message.body, *bodyOf(1));
  EXPECT_TRUE(bundles.empty() && bundles.take().empty());
}

// Whatever is added: each rank gets its messages, in their order.
TEST(Bundles, KeepTheOrderOfEachRank) {
  std::mt19937 random(7);
  for (int run = 0; run < 300; ++run) {
    std::map<std::uint32_t, std::vector<net::Bytes>> sent, received;
    Bundles bundles;
    const std::uint32_t values = 1 + static_cast<std::uint32_t>(random() % 12);
    for (std::uint32_t i = static_cast<std::uint32_t>(random() % 100); i > 0; --i) {
      const auto rank = static_cast<std::uint32_t>(random() % 10);
      const auto body = bodyOf(static_cast<std::uint32_t>(random() % values));
      sent[rank].push_back(*body);
      bundles.add(rank, net::MessageType::Gather, body);
    }
    for (const net::Bytes& one : bundles.take()) {
      RankSet ranks;
      net::Message message{};
      ASSERT_TRUE(decodeRelayed(one, 10, &ranks, &message));
      ranks.forEach([&](std::uint32_t rank) { received[rank].push_back(message.body); });
    }
    EXPECT_EQ(sent, received) << "run " << run;
  }
}

}  // namespace
}  // namespace weft::control
