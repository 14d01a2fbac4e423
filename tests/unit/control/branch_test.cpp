// SPDX-License-Identifier: Apache-2.0
// Communicators that were split off share their parent's control link where they can: what is told
// on it of each of them, whoever leaves first.
#include <signal.h>

#include <numeric>

#include "control/bodies.h"
#include "control/link_costs.h"
#include "control/link_family.h"
#include "control/server_groups.h"
#include "remote_world.h"

namespace weft::control {
namespace {

using namespace weft::test;

// Three hosts, of which two have relays, led by ranks 2 and 4.
constexpr std::uint32_t kAllRanks = 6, kHostRanks = 2;
constexpr int kLinkThreads = 6 + 1 + 2;  // ranks, server, relays

std::vector<std::uint32_t> everybody(std::uint32_t ranks = kAllRanks) {
  std::vector<std::uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

std::size_t openDescriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

// All say the same.
void expectOneVerdict(const Common& common, std::uint32_t ranks, const std::string& part) {
  for (std::uint32_t r = 0; r < ranks; ++r)
    EXPECT_STREQ(common.said[r], common.said[0]) << "rank " << r;
  expectHas(common.said[0], part);
}

TEST(Branch, OpensNothingAndItsErrorsAreItsOwn) {
  const auto one = Common::create(), other = Common::create(), again = Common::create();
  std::atomic<std::uint32_t> came{0};
  std::atomic<std::size_t> before{0};
  runThreads(3, [&](Member& m) {
    if (++came == 3) before = openDescriptors();
    ASSERT_TRUE(eventually(20000, [&] { return before != 0; }));
    Member first(m, everybody(3), one), second(m, {0, 2, 1}, other);
    Member ofSecond(second, everybody(3), again);  // 0, 2, 1 of the first
    ASSERT_TRUE(first.opened.ok() && second.opened.ok() && ofSecond.opened.ok());
    EXPECT_TRUE(eventually(20000, [] { return linkThreads() == 3 + 1; }));
    EXPECT_TRUE(
        eventually(20000, [&] { return openDescriptors() <= before; }));  // others count, too
    // Rank 1 of the first is rank 2 of those.
    const Status strayed = ofSecond.stuckIn(planOf(ofSecond.rank == 2 ? 7 : 8), 20000, 0);
    EXPECT_EQ(strayed.code(), Code::Mismatch) << strayed.text();
    for (const Member* each : {&m, &second})
      EXPECT_TRUE(each->watch->firstError().ok()) << each->watch->firstError().text();
    if (m.rank == 1) first.note(first.watch->abort());
    if (m.rank != 1) first.awaitFirstError();
    EXPECT_TRUE(m.watch->firstError().ok()) << m.watch->firstError().text();
  });
  expectOneVerdict(*again, 3, "rank 2 called all_reduce(count=7, float, sum);");
  expectOneVerdict(*one, 3, "aborted by rank 1 (host h1, pid 4001)");
}

TEST(Branch, NothingIsLeftWhoeverLeavesFirst) {
  ASSERT_TRUE(eventually(3000 * kSlowdown, [] { return linkThreads() == 0; }));
  for (const bool parentFirst : {false, true}) {
    std::vector<std::shared_ptr<Common>> places;
    for (int i = 0; i < 3; ++i) places.push_back(Common::create());
    runThreads(
        kAllRanks,
        [&](Member& m) {
          std::vector<std::unique_ptr<Member>> branches;
          for (const auto& place : places)
            branches.push_back(std::make_unique<Member>(m, everybody(), place));
          if (parentFirst) m.destroy();
          branches[m.rank % 3]->destroy();
          Member& last = *branches[(m.rank + 1) % 3];
          last.call(planOf(3));
        },
        kHostRanks);
    EXPECT_TRUE(eventually(3000 * kSlowdown, [] { return linkThreads() == 0; }));
  }
}

TEST(Branch, HasALinkOfItsOwnWithoutRankZeroOrALeader) {
  const auto opens = [](const std::vector<std::uint32_t>& members) {
    EXPECT_TRUE(eventually(3000 * kSlowdown, [] { return linkThreads() == 0; }));
    const auto place = Common::create();
    std::atomic<int> before{0}, after{0};
    runThreads(
        kAllRanks,
        [&](Member& m) {
          if (m.rank == 0 && eventually(20000, [] { return linkThreads() == kLinkThreads; }))
            before = kLinkThreads;
          ASSERT_TRUE(eventually(20000, [&] { return before != 0; }));
          std::unique_ptr<Member> branch;
          if (std::ranges::find(members, m.rank) != members.end()) {
            branch = std::make_unique<Member>(m, members, place);
            ASSERT_TRUE(branch->opened.ok()) << branch->opened.text();
            if (branch->rank == 0) after = linkThreads();
            branch->call(planOf(5));
            EXPECT_TRUE(branch->watch->finish(10000).ok());
          }
          ASSERT_TRUE(eventually(20000, [&] { return after != 0; }));
        },
        kHostRanks);
    return after > before;
  };
  EXPECT_FALSE(opens({0, 2, 4}));
  EXPECT_FALSE(opens({0, 3, 2}));
  EXPECT_TRUE(opens({2, 0, 4}));
  EXPECT_TRUE(opens({0, 3, 4}));
}

// All but rank 0, of hosts of one rank each: a link of their own, whose server is rank 1's.
const std::vector<std::uint32_t> kOthers{1, 2, 3};
constexpr int kOthersThreads = 3 + 1;

// However many they are, and split off from whom: the first opens what all others use, also when it is
// gone; nothing is left after the last.
TEST(Branch, WithoutRankZeroOneLinkServesAll) {
  ASSERT_TRUE(eventually(3000 * kSlowdown, [] { return linkThreads() == 0; }));
  constexpr std::uint32_t kRanks = 4, kBranches = 8;
  std::vector<std::shared_ptr<Common>> places;
  for (std::uint32_t i = 0; i <= kBranches; ++i) places.push_back(Common::create());
  std::atomic<std::uint32_t> done{0};
  const auto hasOneMore = [] { return linkThreads() == kRanks + 1 + kOthersThreads; };
  runThreads(kRanks, [&](Member& m) {
    std::vector<std::unique_ptr<Member>> branches;
    for (std::uint32_t i = 0; m.rank != 0 && i < kBranches; ++i) {
      if (i % 3 == 2) branches.pop_back();
      const bool ofBranch = i % 2 == 1;  // whose ranks are one less each
      branches.push_back(ofBranch ? std::make_unique<Member>(*branches[0], everybody(3), places[i])
                                  : std::make_unique<Member>(m, kOthers, places[i]));
      ASSERT_TRUE(branches.back()->opened.ok()) << branches.back()->opened.text();
      branches.back()->call(planOf(5));
    }
    if (m.rank != 0) {
      branches.erase(branches.begin(), branches.end() - 1);
      EXPECT_TRUE(eventually(20000, hasOneMore));
      Member& last = *branches.back();
      const Status strayed = last.stuckIn(planOf(last.rank == 2 ? 7 : 8), 20000, 0);
      EXPECT_EQ(strayed.code(), Code::Mismatch) << strayed.text();
      branches.clear();
      // What was bad of one is none of the next.
      Member next(m, kOthers, places[kBranches]);
      EXPECT_TRUE(eventually(20000, hasOneMore));
      next.call(planOf(9));
      EXPECT_TRUE(next.watch->finish(10000).ok());
    }
    ++done;
    ASSERT_TRUE(eventually(20000, [&] { return done == kRanks; }));
  });
  EXPECT_TRUE(eventually(3000 * kSlowdown, [] { return linkThreads() == 0; }));
}

// As weft-limits prints it. All ranks are of this process here, so it is the sum.
TEST(Branch, ALinkCostsWhatIsSaidOfIt) {
  for (const std::uint32_t perHost : {1u, kHostRanks, kAllRanks}) {
    ASSERT_TRUE(eventually(3000 * kSlowdown, [] { return linkThreads() == 0; }));
    const std::size_t before = openDescriptors();
    std::vector<std::uint32_t> hosts;
    for (std::uint32_t r = 0; r < kAllRanks; ++r) hosts.push_back(r / perHost);
    std::size_t threads = 0, most = 0;
    for (std::uint32_t r = 0; r < kAllRanks; ++r) {
      threads += linkCostsOf(r, hosts).threads;
      most += linkCostsOf(r, hosts).descriptors;
    }
    std::atomic<std::uint32_t> seen{0};
    runThreads(
        kAllRanks,
        [&](Member& m) {
          if (m.rank == 0) {
            EXPECT_TRUE(
                eventually(20000, [&] { return linkThreads() == static_cast<int>(threads); }));
            EXPECT_TRUE(eventually(20000, [&] { return openDescriptors() - before <= most; }));
            EXPECT_GE(openDescriptors() - before + 1, most);  // a door, or two
            seen = 1;
          }
          ASSERT_TRUE(eventually(20000, [&] { return seen != 0; }));
        },
        perHost);
  }
}

// Of links that none uses any more a rank keeps a few, and the one that it had last.
TEST(Branch, IdleLinksAreFew) {
  constexpr std::uint32_t kLast = 7;  // who has one with each of the others
  std::vector<std::shared_ptr<Common>> places;
  for (std::uint32_t i = 0; i < kLast; ++i) places.push_back(Common::create());
  std::atomic<std::uint32_t> done{0};
  runThreads(kLast + 1, [&](Member& m) {
    for (std::uint32_t leader = 1; leader < kLast; ++leader) {
      if (m.rank != leader && m.rank != kLast) continue;
      Member branch(m, {leader, kLast}, places[leader]);
      ASSERT_TRUE(branch.opened.ok()) << branch.opened.text();
    }
    ++done;
    ASSERT_TRUE(eventually(20000, [&] { return done > kLast; }));
    // Those of the first, then a server and a client of each leader, and clients of the last.
    constexpr int kFirsts = kLast + 1 + 1, kLeaders = 2 * (kLast - 1);
    constexpr int kAll = kFirsts + kLeaders + LinkFamily::kMostIdle + 1;
    EXPECT_TRUE(eventually(20000, [] { return linkThreads() == kAll; })) << linkThreads();
    ++done;
    ASSERT_TRUE(eventually(20000, [&] { return done > 2 * kLast + 1; }));
  });
}

// The process of the first's rank 0 has the server of the first alone.
TEST(Branch, AStrangerThatIsKilledTouchesNobodyAndAMateIsNamed) {
  const auto place = Common::create(), firsts = Common::create();
  const Processes p(4, [&](Member& m) {
    if (m.rank == 0) {
      m.reached(1);
      (void)m.awaitGo(9);
      return;
    }
    Member first(m, kOthers, firsts), branch(m, kOthers, place);
    ASSERT_TRUE(branch.opened.ok()) << branch.opened.text();
    branch.call(planOf(10));
    m.reached(1);
    ASSERT_TRUE(m.awaitGo(1));
    branch.call(planOf(11));
    EXPECT_TRUE(branch.watch->finish(20000).ok()) << branch.watch->firstError().text();
    m.reached(2);
    (void)branch.stuckIn(planOf(20), 20000, 1);
    m.reached(3);
  });
  ASSERT_TRUE(p.allReached(1));
  p.harm(0, SIGKILL);
  p.common->go = 1;
  for (const std::uint32_t r : kOthers) ASSERT_TRUE(p.reached(r, 2)) << "rank " << r;
  const double start = nowMs();
  p.harm(2, SIGKILL);
  for (const std::uint32_t r : {1u, 3u}) {
    EXPECT_TRUE(p.reached(r, 3)) << "rank " << r;
    expectHas(place->said[r - 1], text("rank 1 (host h2, pid ", p.pids[2], ")"));
    EXPECT_LT(place->at[r - 1] - start, kPromptMs);
  }
}

// Named by the numbers of the branch: the second host's ranks change places in it.
void expectKilledIsNamedAfterItsParent(std::uint32_t victim) {
  const std::vector<std::uint32_t> members{0, 1, 3, 2, 4, 5};
  const auto place = Common::create();
  const Processes p(
      kAllRanks,
      [&](Member& m) {
        Member branch(m, members, place);
        ASSERT_TRUE(branch.opened.ok()) << branch.opened.text();
        branch.call(planOf(10));
        m.destroy();
        m.reached(1);
        (void)branch.stuckIn(planOf(20), 20000, members[victim]);
        m.reached(2);
      },
      kHostRanks);
  ASSERT_TRUE(p.allReached(1));
  const double start = nowMs();
  p.harm(victim, SIGKILL);
  for (const std::uint32_t r : everybody()) {
    if (r == victim) continue;
    EXPECT_TRUE(p.reached(r, 2)) << "rank " << r;
    const std::uint32_t inBranch = members[r];
    expectHas(place->said[inBranch], text("rank ", members[victim], " (host h", victim / kHostRanks,
                                          ", pid ", p.pids[victim], ")"));
    EXPECT_LT(place->at[inBranch] - start, 700.0 * kSlowdown);
  }
}

TEST(Branch, AKilledMateIsNamedAfterItsParent) { expectKilledIsNamedAfterItsParent(3); }

TEST(Branch, AKilledLeaderIsNamedAfterItsParent) { expectKilledIsNamedAfterItsParent(2); }

TEST(Branch, AKilledRankZeroIsNamedAfterItsParent) { expectKilledIsNamedAfterItsParent(0); }

// A link whose server has two communicators, of which the second has changed two ranks' places.
struct Switchboard {
  Switchboard() {
    for (std::uint32_t r = 0; r < 3; ++r) groups.seat(r, {});
    (void)sent();
    newGroups->add(number, {0, 2, 1});
  }
  // Who is told what, and of which communicator.
  std::vector<std::string> sent() {
    std::vector<std::string> all;
    while (auto out = groups.take()) {
      std::uint32_t group = 0;
      net::Message inner{out->type, *out->body};
      if (out->type == net::MessageType::Grouped) {
        EXPECT_TRUE(decodeGrouped(*out->body, &group, &inner));
      }
      all.push_back(text(out->rank, ":", static_cast<int>(inner.type), " of ", group));
    }
    return all;
  }
  void hear(std::uint32_t rank, net::MessageType type, const net::Bytes& body = {}) {
    groups.hear(rank, {net::MessageType::Grouped, encodeGrouped(number, type, body)}, now);
  }
  void leaves(std::uint32_t rank) {
    hear(rank, net::MessageType::Report, encode(PageReport{.left = true, .calls = {}}));
    hear(rank, net::MessageType::Bye);
  }
  std::string told(std::uint32_t rank, net::MessageType type) const {
    return text(rank, ":", static_cast<int>(type), " of ", number);
  }

  const std::shared_ptr<NewGroups> newGroups = std::make_shared<NewGroups>();
  ServerGroups groups{namesOf(3), newGroups};
  const std::uint32_t number = 1;
  const ServerGroups::Clock::time_point now = ServerGroups::Clock::now();
};

TEST(ServerGroups, WhoComesLateIsToldWhatItMissed) {
  Switchboard board;
  board.groups.lose(1, {}, board.now);
  board.hear(0, net::MessageType::Failed,
             bootstrap::encode(Status::error(Code::Aborted, "somebody has had enough")));
  board.groups.tick(board.now + ControlState::kLossPatience);
  (void)board.sent();
  board.hear(2, net::MessageType::Info);
  const auto told = board.sent();
  for (const auto type :
       {net::MessageType::Roster, net::MessageType::Ended, net::MessageType::Error})
    EXPECT_NE(std::ranges::find(told, board.told(2, type)), told.end());
}

TEST(ServerGroups, OneOfWhichNothingCameIsForgotten) {
  Switchboard board;
  board.newGroups->add(2, {0, 1});
  board.hear(0, net::MessageType::Info);  // so the server knows both
  board.newGroups->drop(2);
  board.newGroups->add(3, {0, 1});
  board.newGroups->drop(3);
  for (const std::uint32_t r : {0u, 1u, 2u}) board.leaves(r);
  board.groups.tick(board.now);
  (void)board.sent();
  board.groups.lose(1, {}, board.now);
  board.groups.tick(board.now + ControlState::kLossPatience);
  const std::string ended = text(static_cast<int>(net::MessageType::Ended), " of 0");
  EXPECT_EQ(board.sent(), (std::vector{"0:" + ended, "2:" + ended}));
}

TEST(ServerGroups, AGoodbyeToOneIsHeardAndNoneToTheOthers) {
  Switchboard board;
  board.leaves(1);
  EXPECT_EQ(board.sent(), std::vector{board.told(1, net::MessageType::Bye)});
  EXPECT_TRUE(board.groups.here(1));
  for (const std::uint32_t r : {0u, 2u}) board.leaves(r);
  board.groups.tick(board.now);
  (void)board.sent();
  EXPECT_FALSE(board.groups.nobodyHere());  // the first is there
  board.leaves(1);                          // again, by another way, of one that is forgotten
  EXPECT_EQ(board.sent(), std::vector{board.told(1, net::MessageType::Bye)});
}

TEST(ServerGroups, AConnectionSaysGoodbyeOnceAndLast) {
  Switchboard board;
  board.hear(1, net::MessageType::Info);
  board.groups.beginToLeave(board.now);
  board.groups.leave(board.now);
  const auto told = board.sent();
  const std::string bye = text(":", static_cast<int>(net::MessageType::Bye), " of 0");
  ASSERT_GE(told.size(), 2u);
  EXPECT_EQ(told[told.size() - 2], "1" + bye);
  EXPECT_EQ(told[told.size() - 1], "2" + bye);
  EXPECT_EQ(std::ranges::count(told, "1" + bye), 1);
}

TEST(ServerGroups, NoiseIsRefusedOrHarmless) {
  Switchboard board;
  const net::Bytes good = encodeGrouped(300, net::MessageType::Query, net::Bytes(4));
  std::uint32_t group = 0;
  net::Message inner{};
  ASSERT_TRUE(decodeGrouped(good, &group, &inner));
  EXPECT_EQ(group, 300u);
  EXPECT_EQ(inner.body.size(), 4u);
  for (std::size_t cut = 0; cut < 3; ++cut)
    EXPECT_FALSE(decodeGrouped(net::ByteView(good).first(cut), &group, &inner));
  board.groups.hear(1, {net::MessageType::Grouped, good}, board.now);
  board.groups.hear(1, {net::MessageType::Grouped, {}}, board.now);
  EXPECT_TRUE(board.sent().empty());
}

}  // namespace
}  // namespace weft::control
