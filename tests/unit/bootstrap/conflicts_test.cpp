// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/conflicts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <random>
#include <thread>

#include "bootstrap/rendezvous.h"
#include "helpers.h"

namespace weft::bootstrap {
namespace {

using test::expectHas;

Member member(int rank, int size, std::string config = "", std::string version = "1.2.0") {
  Member result;
  result.hello.rank = rank;
  result.hello.size = size;
  result.hello.version = std::move(version);
  result.info.configText = std::move(config);
  result.info.who = {rank, "a", 100 + std::clamp(rank, 0, 1000)};
  return result;
}

TEST(Conflicts, NoneAmongEquals) {
  EXPECT_TRUE(findConflict({member(0, 2, "A=1"), member(1, 2, "A=1")}).ok());
}

TEST(Conflicts, WorldSizeNamesTheFewFirst) {
  const Status status = findConflict({member(0, 4), member(1, 4), member(2, 4), member(3, 8)});
  EXPECT_EQ(status.code(), Code::Mismatch);
  expectHas(status.text(), "rank 3 says world size 8, ranks 0-2 say 4");
}

TEST(Conflicts, VersionsNameRanksLibrariesAndProtocols) {
  Member old = member(3, 4, "", "1.0.1");
  old.hello.wire = {1, 2};
  Member current = member(0, 4);
  current.hello.wire = {3, 4};
  expectHas(findConflict({current, old}).text(),
            "rank 0: libweft 1.2.0, rank 3: libweft 1.0.1: protocols 3-4 vs 1-2");
}

TEST(Conflicts, Duplicates) {
  Member other = member(2, 4);
  other.info.who = {2, "b", 90};
  expectHas(findConflict({member(0, 4), other, member(2, 4)}).text(),
            "rank 2 joined twice: host a pid 102 and host b pid 90");
}

TEST(Conflicts, RankOutOfRange) {
  expectHas(findConflict({member(0, 4), member(4, 4)}).text(),
            "rank 4 (host a, pid 104) is outside of its world size 4");
}

TEST(Conflicts, NoRankAndNoWorldIsTooOdd) {
  expectHas(findConflict({member(0, INT_MIN)}).text(),
            "rank 0 (host a, pid 100) says world size -2147483648");
  expectHas(findConflict({member(0, INT_MAX)}).text(), "which is not from 1 to 1048576");
  expectHas(findConflict({member(-5, 4)}).text(),
            "host a says that it is rank -5; ranks are 0 to 3");
  expectHas(findConflict({member(INT_MAX, 4)}).text(), "is outside of its world size 4");
}

// The root must not make room for as many ranks as one says there are, and what it says must reach the others.
TEST(Conflicts, ARankThatClaimsAnythingFailsTheRendezvous) {
  for (const auto& [rank, size] :
       {std::pair(0, INT_MIN), {0, INT_MAX}, {0, 0}, {-5, 2}, {INT_MAX, 2}}) {
    Rendezvous rendezvous({.settleMs = 0});
    Member joining = member(rank, size);
    joining.info.patienceMs = 1000;
    rendezvous.join(std::move(joining));
    rendezvous.tick();
    EXPECT_EQ(rendezvous.failure().code(), Code::Mismatch) << rank << " of " << size;
    const auto told = rendezvous.takeBroadcast();
    Status error;
    ASSERT_TRUE(told && decode(*told->body, &error)) << rank << " of " << size;
    EXPECT_EQ(error.code(), Code::Mismatch);
  }
}

TEST(Conflicts, ARankInAnotherRoundIsNamed) {
  Rendezvous rendezvous({});
  rendezvous.join(member(0, 2));
  const Rendezvous::Seat second = rendezvous.join(member(1, 2));
  ASSERT_TRUE(rendezvous.complete());
  rendezvous.gather(second, {.round = 2, .patienceMs = 1000, .part = {}});
  EXPECT_EQ(rendezvous.failure().code(), Code::Mismatch);
  EXPECT_EQ(rendezvous.failure().data().who.rank, 1);
  expectHas(rendezvous.failure().text(),
            "rank 1 (host a, pid 101) is in set-up round 2 while the others are in round 1");
}

// Others are not called late by one that has come with no time to wait for them.
TEST(Conflicts, WhoHasNoTimeLeftIsNamed) {
  Rendezvous rendezvous({});
  rendezvous.join(member(0, 2));
  const Rendezvous::Seat second = rendezvous.join(member(1, 2));
  rendezvous.gather(second, {.round = 1, .patienceMs = 0, .part = {}});
  rendezvous.tick();
  EXPECT_EQ(rendezvous.failure().code(), Code::Timeout);
  EXPECT_EQ(rendezvous.failure().data().who.rank, 1);
  expectHas(rendezvous.failure().text(),
            "rank 1 (host a, pid 101) had hardly any time left when it came to set-up round 1");
}

TEST(Conflicts, WhoHasNoTimeLeftIsNotNamedWhereOthersWereMissingBefore) {
  Rendezvous rendezvous({.hurriedMs = 1});
  const Rendezvous::Seat first = rendezvous.join(member(0, 3));
  const Rendezvous::Seat second = rendezvous.join(member(1, 3));
  rendezvous.join(member(2, 3));
  rendezvous.gather(first, {.round = 1, .patienceMs = 1000, .part = {}});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  rendezvous.gather(second, {.round = 1, .patienceMs = 0, .part = {}});
  rendezvous.tick();
  EXPECT_EQ(rendezvous.failure().data().who.rank, 2);
  expectHas(rendezvous.failure().text(), "waiting for 1 of 3 ranks: 2");
}

TEST(Conflicts, ConfigurationNamesOnlyTheKeysThatDiffer) {
  std::vector<Member> members = {member(7, 8, "WEFT_ALGO=tree;X=1")};
  for (int rank = 0; rank < 7; ++rank) members.push_back(member(rank, 8, "WEFT_ALGO=ring;X=1"));
  const std::string text = findConflict(members).text();
  expectHas(text, "WEFT_ALGO differs: ring on 0-6, tree on 7.");
  EXPECT_EQ(text.find("X differs"), std::string::npos);
}

TEST(Conflicts, AKeyThatOnlySomeHaveShowsAsUnset) {
  expectHas(findConflict({member(0, 2, "A=1;B=2"), member(1, 2, "A=1")}).text(),
            "B differs: 2 on 0, (unset) on 1");
}

TEST(Conflicts, TheOrderOfArrivalDoesNotMatter) {
  std::vector<Member> members = {member(0, 4), member(1, 8, "A=2"), member(2, 4), member(2, 8),
                                 member(9, 4)};
  const std::string text = findConflict(members).text();
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::shuffle(members.begin(), members.end(), random);
    EXPECT_EQ(findConflict(members).text(), text);
  }
}

}  // namespace
}  // namespace weft::bootstrap
