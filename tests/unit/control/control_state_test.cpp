// SPDX-License-Identifier: Apache-2.0
// What the server decides, without sockets and clocks.
#include "control/control_state.h"

#include <array>
#include <random>

#include "control/bodies.h"
#include "control/survey.h"
#include "remote_world.h"

namespace weft::control {
namespace {

using namespace weft::test;
using Loss = ControlState::Loss;

// A server's state with everybody seated, and what it has sent since.
struct Board {
  explicit Board(std::uint32_t ranks, std::uint32_t perHost = 1)
      : names(namesOf(ranks, perHost)), board(names) {
    for (std::uint32_t r = 0; r < ranks; ++r) board.seat(r);
    (void)sent();
  }
  std::vector<ControlState::Outgoing> sent() {
    std::vector<ControlState::Outgoing> all;
    while (auto out = board.take()) all.push_back(*out);
    return all;
  }
  // As the server does, once it has read what came.
  std::vector<ControlState::Outgoing> sentAt(Clock::time_point now) {
    board.tick(now);
    return sent();
  }
  std::vector<std::uint32_t> receiversOf(net::MessageType type) {
    std::vector<std::uint32_t> ranks;
    for (const auto& out : sent()) {
      if (out.type == type) ranks.push_back(out.rank);
    }
    return ranks;
  }
  // What rank 0 is told of the ends of others.
  std::vector<std::string> endings() {
    std::vector<std::string> lines;
    for (const auto& out : sent()) {
      Ending ending;
      if (out.rank != 0 || out.type != net::MessageType::Ended) continue;
      EXPECT_TRUE(decode(*out.body, 8, &ending));
      ending.ranks.forEach([&](std::uint32_t r) {
        const Status why = ending.why.ok() ? hasEnded(names[r]) : ending.why;
        lines.push_back(text(r, ": ", why.text()));
      });
    }
    return lines;
  }
  const std::vector<PeerName> names;
  ControlState board;
  const Clock::time_point start = Clock::now();
  Clock::time_point after(int ms) const { return start + milliseconds(ms); }
};

// After so many calls, which all make alike.
PageReport did(std::uint64_t calls) {
  PageReport page;
  page.callSeq = calls;
  page.fingerprint = 100 * calls;
  return page;
}

News newsIn(const ControlState::Outgoing& out, std::size_t ranks) {
  News news;
  EXPECT_TRUE(decode(*out.body, ranks, &news));
  return news;
}

using Ranks = std::vector<std::uint32_t>;

TEST(ControlState, AQuestionGoesToAllOthersAndTheAnswersToTheAsker) {
  Board b(3);
  b.board.query(1, did(0), b.start);
  b.board.tick(b.start);
  EXPECT_EQ(b.receiversOf(net::MessageType::Query), (Ranks{0, 2}));
  b.board.report(0, did(0));
  EXPECT_TRUE(b.sentAt(b.start).empty());
  PageReport left = did(0);
  left.left = true;
  b.board.report(2, left);
  const auto sent = b.sentAt(b.start);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rank, 1u);
  const News news = newsIn(sent[0], 3);
  ASSERT_EQ(news.groups.size(), 2u);
  EXPECT_EQ(news.groups[0].ranks, RankSet({{0, 1}}));
  EXPECT_FALSE(news.groups[0].left);
  EXPECT_EQ(news.groups[1].ranks, RankSet({{2, 2}}));
  EXPECT_TRUE(news.groups[1].left);
}

TEST(ControlState, OneRoundServesAllWhoAskMeanwhile) {
  Board b(4);
  for (const std::uint32_t r : {1u, 2u, 0u}) b.board.query(r, did(1), b.start);
  b.board.tick(b.start);
  EXPECT_EQ(b.receiversOf(net::MessageType::Query), Ranks{3});
  b.board.report(3, did(1));
  b.board.tick(b.start);
  EXPECT_EQ(b.receiversOf(net::MessageType::Report), (Ranks{0, 1, 2}));
}

TEST(ControlState, WhoDoesNotAnswerIsReportedAndNotAskedAgain) {
  Board b(2);
  b.board.query(0, did(1), b.start);
  EXPECT_EQ(b.sentAt(b.start).size(), 1u);
  ASSERT_TRUE(b.board.nextTick().has_value());
  b.board.tick(*b.board.nextTick());
  EXPECT_EQ(b.receiversOf(net::MessageType::Report), (Ranks{0}));
  b.board.query(0, did(1), b.after(3000));
  EXPECT_TRUE(b.sentAt(b.after(3000)).empty());
  const auto sent = b.sentAt(b.after(3100));
  ASSERT_EQ(sent.size(), 1u);
  const News news = newsIn(sent[0], 2);
  ASSERT_EQ(news.silences.size(), 1u);
  EXPECT_EQ(news.silences[0].ms, 3100u);
  EXPECT_EQ(news.silences[0].ranks, RankSet({{1, 1}}));
}

// Who dies or leaves during a round is not waited for.
TEST(ControlState, ARoundEndsWithoutThoseWhoHaveGone) {
  Board b(3);
  b.board.query(0, did(1), b.start);
  EXPECT_EQ(b.sentAt(b.start).size(), 2u);
  b.board.lose(1, {}, b.start);
  b.board.report(2, did(1));
  b.board.tick(b.start);
  EXPECT_EQ(b.receiversOf(net::MessageType::Report), Ranks{0});
}

// The calls of a rank, of which those from `stray` on are others than everybody's.
PageReport withCalls(std::uint64_t calls, std::uint64_t stray = ~0ull) {
  PageReport page = did(calls);
  for (std::uint64_t seq = calls - std::min<std::uint64_t>(calls, PageReport::kCalls) + 1;
       seq <= calls; ++seq)
    page.calls.push_back({seq, 100 * seq + (seq >= stray), seq, seq >= stray});
  if (!page.calls.empty()) page.fingerprint = page.calls.back().fingerprint;
  return page;
}
PageReport withoutCalls(PageReport page) {
  page.calls.clear();
  return page;
}

// Both sides of a disagreement are told with the first call that differs, and one rank a side is
// asked for it.
TEST(ControlState, TheFirstCallThatDiffersIsFound) {
  Board b(8);
  const PageReport usual = withCalls(20), other = withCalls(21, 17);
  for (std::uint32_t r = 0; r < 8; ++r)
    b.board.query(r, withoutCalls(r == 5 || r == 6 ? other : usual), b.start);
  b.board.tick(b.start);
  EXPECT_EQ(b.receiversOf(net::MessageType::Query), (Ranks{5, 0}));
  b.board.report(5, other);
  b.board.report(0, usual);
  const auto sent = b.sentAt(b.start);
  ASSERT_EQ(sent.size(), 8u);
  const News news = newsIn(sent[0], 8);
  ASSERT_EQ(news.groups.size(), 2u);
  EXPECT_EQ(news.groups[0].parting, (PageReport::Call{17, 1700, 17, 0}));
  EXPECT_EQ(news.groups[1].parting, (PageReport::Call{17, 1701, 17, 1}));
  EXPECT_EQ(news.groups[1].ranks, RankSet({{5, 6}}));
  EXPECT_EQ(news.groups[1].last.seq, 21u);
}

// A rank that is behind agrees: nothing differs, and the next round need not ask for calls again.
TEST(ControlState, WhoIsBehindOnTheSameWayHasNotStrayed) {
  Board b(3);
  const PageReport ahead = withCalls(20), behind = withCalls(18);
  for (int round = 0; round < 2; ++round) {
    for (const std::uint32_t r : {0u, 2u}) b.board.query(r, withoutCalls(ahead), b.start);
    b.board.query(1, withoutCalls(behind), b.start);
    auto sent = b.sentAt(b.start);
    if (round == 0) {
      for (const auto& out : sent) b.board.report(out.rank, out.rank == 1 ? behind : ahead);
      sent = b.sentAt(b.start);
    }
    ASSERT_EQ(sent.size(), 3u);
    const News news = newsIn(sent[0], 3);
    EXPECT_TRUE(news.settled);
    ASSERT_EQ(news.groups.size(), 2u);
    EXPECT_EQ(news.groups[1].last.seq, 18u);
    for (const News::Group& group : news.groups) EXPECT_FALSE(group.parting.has_value());
  }
}

// Whoever is asked for its calls and does not answer costs the others a moment, not the news.
TEST(ControlState, CallsThatDoNotComeAreNotAwaited) {
  Board b(3);
  for (std::uint32_t r = 0; r < 3; ++r) b.board.query(r, did(r == 0 ? 2 : 3), b.start);
  EXPECT_EQ(b.sentAt(b.start).size(), 2u);
  EXPECT_TRUE(b.sentAt(b.after(9)).empty());
  const auto sent = b.sentAt(b.after(10));
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_FALSE(newsIn(sent[0], 3).settled);
}

TEST(ControlState, TheFirstCauseHolds) {
  Board b(3);
  b.board.propose(Status::error({.code = Code::Mismatch,
                                 .who = {2, "h2", 77},
                                 .device = "eth1",
                                 .port = 2,
                                 .call = "barrier() #3",
                                 .missing = {0, 1},
                                 .what = "first",
                                 .fix = "none"}));
  b.board.propose(Status::error(Code::Timeout, "second"));
  const auto sent = b.sent();
  ASSERT_EQ(sent.size(), 3u);
  for (const auto& out : sent) {
    Status firstError;
    ASSERT_TRUE(bootstrap::decode(*out.body, &firstError));
    EXPECT_EQ(firstError.text(), "first; fix: none");
    EXPECT_EQ(firstError.data().who, (PeerName{2, "h2", 77}));
    EXPECT_EQ(firstError.data().device, "eth1");
    EXPECT_EQ(firstError.data().port, 2);
    EXPECT_EQ(firstError.data().call, "barrier() #3");
    EXPECT_EQ(firstError.data().missing, (std::vector<std::uint32_t>{0, 1}));
  }
}

TEST(ControlState, AnEndWithoutGoodbyeIsToldAfterAMoment) {
  Board b(3);
  b.board.lose(2, {}, b.start);
  b.board.tick(b.after(49));
  EXPECT_TRUE(b.endings().empty());
  b.board.tick(b.after(50));
  const auto endings = b.endings();
  ASSERT_EQ(endings.size(), 1u);
  expectHas(endings[0], "2: rank 2 (host h2, pid 4002) has ended: its connection closed");
  EXPECT_FALSE(b.board.nextTick().has_value());
}

TEST(ControlState, WhoHasGoneDoesNotComeBackForSomebodyElse) {
  ControlState state(namesOf(2));
  state.seat(1);
  state.lose(1, {}, Clock::now());
  state.seat(1);
  EXPECT_FALSE(state.everybodyCame());
  EXPECT_FALSE(state.here(1));
}

// An orphan is one whose relay is gone.
TEST(ControlState, AnOrphanIsLostIfItDoesNotComeBack) {
  Board b(4);
  b.board.orphan(2, b.start);
  b.board.orphan(3, b.after(10));
  b.board.comeBack(2);
  b.board.tick(b.after(5009));
  EXPECT_FALSE(b.board.hasLeft(3));
  b.board.tick(b.after(5010));
  b.board.tick(b.after(5060));
  const auto endings = b.endings();
  ASSERT_EQ(endings.size(), 1u);
  expectHas(endings[0], "3: rank 3");
  EXPECT_TRUE(b.board.here(2));
}

TEST(ControlState, AnOrphanMayDieOrLeave) {
  Board b(4);
  PageReport left = did(4);
  left.left = true;
  b.board.report(2, left);
  for (const std::uint32_t r : {2u, 3u}) {
    b.board.orphan(r, b.start);
    b.board.comeBack(r);
  }
  b.board.bye(2, b.start);
  b.board.lose(3, {}, b.start);
  b.board.tick(b.after(6000));
  const auto endings = b.endings();
  ASSERT_EQ(endings.size(), 1u);
  expectHas(endings[0], "3: rank 3");
  EXPECT_FALSE(b.board.nextTick().has_value());
}

TEST(ControlState, WhoComesBackIsToldWhatItMayHaveMissed) {
  Board b(4);
  PageReport left = did(4);
  left.left = true;
  b.board.report(0, left);
  b.board.bye(0, b.start);
  b.board.report(1, did(3));
  b.board.lose(1, {}, b.start);
  b.board.tick(b.after(50));
  b.board.propose(Status::error(Code::LinkLost, "a link"));
  (void)b.sent();
  b.board.orphan(2, b.after(60));
  b.board.comeBack(2);
  std::vector<net::MessageType> types;
  for (const auto& out : b.sent()) {
    EXPECT_EQ(out.rank, 2u);
    types.push_back(out.type);
  }
  using enum net::MessageType;
  EXPECT_EQ(types,
            (std::vector<net::MessageType>{Roster, Report, Ended, Error, Gathered, Gathered}));
}

// Of whom a relay speaks for that does not move, nobody knows whether they would answer.
TEST(ControlState, OfAStoppedRelayOnlyItsLeaderIsSilent) {
  ControlState state(namesOf(6, 2));
  for (std::uint32_t r = 0; r < 6; ++r)
    state.seat(r, r < 2 ? std::nullopt : std::optional(r / 2 * 2));
  const Clock::time_point start = Clock::now();
  const auto silentAfter = [&](const std::vector<std::uint32_t>& answering, int ms) {
    const auto now = start + milliseconds(ms);
    for (const std::uint32_t r : answering) state.report(r, did(1));
    state.query(0, did(1), now);
    for (int i = 0; i < 3; ++i) state.tick(now + i * Questions::kAnswerPatience);
    std::vector<std::uint32_t> silent;
    while (const auto out = state.take())
      if (out->rank == 0 && out->type == net::MessageType::Report)
        for (const News::Silence& one : newsIn(*out, 6).silences)
          one.ranks.forEach([&](std::uint32_t r) { silent.push_back(r); });
    return silent;
  };
  EXPECT_TRUE(silentAfter({1, 2, 3, 4, 5}, 0).empty());
  EXPECT_EQ(silentAfter({1, 4}, 2000), (Ranks{2, 5}));
  state.comeBack(3);
  EXPECT_EQ(silentAfter({1, 3, 4, 5}, 4000), (Ranks{2}));
}

TEST(ControlState, AGoodbyeIsNoEndIfTheRankHasLeft) {
  Board b(3);
  PageReport left = did(4);
  left.left = true;
  b.board.report(1, left);
  b.board.bye(1, b.start);
  b.board.report(2, did(4));
  b.board.bye(2, b.start);
  b.board.tick(b.after(1000));
  const auto endings = b.endings();
  ASSERT_EQ(endings.size(), 1u);
  expectHas(endings[0], "2: rank 2");
}

// It had been asked before it left, and its answer comes later.
TEST(ControlState, WhatRankZeroDidLastIsAskedAnew) {
  Board b(2);
  b.board.query(1, did(1), b.start);
  EXPECT_EQ(b.sentAt(b.start).size(), 1u);  // the question to rank 0
  b.board.beginToLeave(b.start);
  b.board.report(0, did(1));
  EXPECT_FALSE(b.board.mayLeave());
  const auto asked = b.sentAt(b.start);
  EXPECT_TRUE(std::ranges::any_of(
      asked, [](const auto& out) { return out.rank == 0 && out.type == net::MessageType::Query; }));
  PageReport last = did(1);
  last.left = true;
  b.board.report(0, last);
  EXPECT_TRUE(b.board.mayLeave());
  b.board.leave(b.start);
  EXPECT_EQ(b.receiversOf(net::MessageType::Ended), std::vector<std::uint32_t>());
}

TEST(ControlState, AHostThatIsCutOffIsNamedWithItsRanks) {
  Board b(6, 2);
  const Loss cut{Loss::Cut, milliseconds(3140)};
  b.board.lose(4, cut, b.start);
  b.board.lose(5, cut, b.after(3));
  b.board.tick(b.after(260));
  const auto endings = b.endings();
  ASSERT_EQ(endings.size(), 2u);
  for (const std::string& line : endings)
    expectHas(line, "host h2 (ranks 4-5) unreachable for 3.1 s: host or its uplink is down");
}

TEST(ControlState, IfAllOthersAreCutOffItIsThisHost) {
  Board b(6, 2);
  const Loss cut{Loss::Cut, milliseconds(3000)};
  for (std::uint32_t r = 2; r < 6; ++r)
    b.board.lose(r, cut, b.after(50 * static_cast<int>(r)));  // not all at once
  b.board.tick(b.after(260));
  EXPECT_TRUE(b.endings().empty());
  b.board.tick(b.after(360));
  const auto endings = b.endings();
  ASSERT_EQ(endings.size(), 4u);
  expectHas(endings[0], "the uplink of host h0 is down");
}

// The kernel gives up each connection in its own time.
TEST(ControlState, WhileOthersAreSilentTooNoHostIsBlamed) {
  Board b(6, 2);
  const Loss cut{Loss::Cut, milliseconds(3000)};
  bool silent = true;
  const auto moreSilence = [&silent] { return silent; };
  const auto endingsAt = [&](int ms) {
    b.board.tick(b.after(ms), moreSilence);
    return b.endings();
  };
  b.board.lose(2, cut, b.start);
  b.board.lose(3, cut, b.after(10));
  EXPECT_TRUE(endingsAt(260).empty());
  b.board.lose(4, cut, b.after(1400));
  b.board.lose(5, cut, b.after(1400));
  silent = false;
  const auto endings = endingsAt(1660);
  ASSERT_EQ(endings.size(), 4u);
  expectHas(endings[0], "the uplink of host h0 is down");
}

TEST(ControlState, SilenceIsWaitedForAWhileOnly) {
  Board b(6, 2);
  const auto endingsAt = [&](int ms) {
    b.board.tick(b.after(ms), [] { return true; });
    return b.endings();
  };
  b.board.lose(4, {Loss::Cut, milliseconds(3000)}, b.start);
  for (int ms = 250; ms < 4000; ms += 250) EXPECT_TRUE(endingsAt(ms).empty());
  EXPECT_EQ(endingsAt(4000).size(), 1u);
}

TEST(ControlState, ADeathDoesNotWaitForSilence) {
  Board b(6, 2);
  b.board.lose(5, {Loss::Cut, milliseconds(3000)}, b.start);
  b.board.lose(2, {}, b.after(10));
  b.board.tick(b.after(70), [] { return true; });
  EXPECT_EQ(b.endings().size(), 2u);
}

TEST(ControlState, ADeathDoesNotWaitForCuts) {
  Board b(6, 2);
  b.board.lose(5, {Loss::Cut, milliseconds(3000)}, b.start);
  b.board.lose(2, {}, b.after(10));
  b.board.tick(b.after(70));
  EXPECT_EQ(b.endings().size(), 2u);
}

TEST(ControlState, NobodyIsHereOnceAllHaveGone) {
  Board b(2);
  EXPECT_TRUE(b.board.everybodyCame());
  b.board.lose(0, {}, b.start);
  EXPECT_FALSE(b.board.nobodyHere());
  b.board.lose(1, {}, b.start);
  EXPECT_TRUE(b.board.nobodyHere());
}

Status lostLink() { return Status::error(Code::LinkLost, "a link"); }

// The causes that rank 0 is told, and parts: "1: 4 bytes", "1: last".
std::vector<std::string> told(Board& b) {
  std::vector<std::string> lines;
  for (const auto& out : b.sent()) {
    Status cause;
    Part part;
    if (out.rank != 0) continue;
    if (out.type == net::MessageType::Error && bootstrap::decode(*out.body, &cause))
      lines.push_back(cause.text());
    if (out.type == net::MessageType::Gathered && decode(*out.body, 8, &part))
      lines.push_back(
          text(part.rank, ": ", part.last ? "last" : text(part.bytes.size(), " bytes")));
  }
  return lines;
}
using Lines = std::vector<std::string>;

TEST(ControlState, AnyOtherCauseTakesThePlaceOfALostLink) {
  Board b(2);
  b.board.propose(lostLink());
  b.board.propose(lostLink());
  EXPECT_EQ(told(b), Lines{"a link"});
  b.board.propose(Status::error(Code::RemoteError, "a death"));
  b.board.propose(Status::error(Code::Timeout, "a delay"));
  b.board.propose(lostLink());
  EXPECT_EQ(told(b), Lines{"a death"});
}

TEST(ControlState, PartsGoToAllInTheirOrder) {
  Board b(3);
  b.board.gather(1, net::Bytes(4));
  b.board.gather(0, net::Bytes(0));
  b.board.gather(1, net::Bytes(5));
  EXPECT_EQ(told(b), (Lines{"1: 4 bytes", "0: 0 bytes", "1: 5 bytes"}));
}

// Whether it left before the link was lost or after.
TEST(ControlState, AfterALostLinkLeaversAreNamed) {
  Board b(4);
  PageReport left = did(3);
  left.left = true;
  for (const std::uint32_t r : {1u, 2u}) b.board.report(r, left);
  b.board.bye(1, b.start);
  EXPECT_EQ(told(b), Lines{});
  b.board.propose(lostLink());
  EXPECT_EQ(told(b), (Lines{"a link", "1: last"}));
  b.board.bye(2, b.start);
  EXPECT_EQ(told(b), Lines{"2: last"});
}

TEST(PageReport, TellsTheLastCalls) {
  transport::ControlPage page;
  for (std::uint64_t seq = 1; seq <= 100; ++seq) {
    transport::CallRecord& record = page.calls[seq % transport::kCallRecords];
    record.fingerprint = 7 * seq;
    record.count = seq;
    record.seq = seq;
    page.callSeq = seq;
  }
  page.inCall = 1;
  PageReport report;
  ASSERT_TRUE(decode(encode(readPage(page, true)), &report));
  transport::ControlPage mirror;
  writePage(report, &mirror);
  EXPECT_EQ(mirror.callSeq, 100u);
  EXPECT_EQ(mirror.inCall, 1u);
  constexpr std::uint64_t kOldest = 101 - PageReport::kCalls;
  for (std::uint64_t seq = kOldest; seq <= 100; ++seq) {
    const transport::CallRecord& record = mirror.calls[seq % transport::kCallRecords];
    EXPECT_EQ(record.seq, seq);
    EXPECT_EQ(record.fingerprint, 7 * seq);
  }
  EXPECT_EQ(mirror.calls[(kOldest - 1) % transport::kCallRecords].seq, 0u);
}

// Whoever holds the key may still be another version, or broken.
TEST(Bodies, NoiseIsRefusedOrHarmless) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    net::Bytes bytes(random() % 600);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 4);
    PageReport page;
    News news;
    Ending ending;
    Part part;
    (void)decode(bytes, &page);
    if (decode(bytes, 3, &part)) {
      EXPECT_LT(part.rank, 3u);
    }
    if (decode(bytes, 3, &news)) {
      std::size_t named = 0;
      for (const News::Group& group : news.groups) {
        group.ranks.forEach([&](std::uint32_t r) { EXPECT_LT(r, 3u); });
        named += group.ranks.size();
      }
      EXPECT_LE(named, 3u);
    }
    if (decode(bytes, 3, &ending)) {
      ending.ranks.forEach([&](std::uint32_t r) { EXPECT_LT(r, 3u); });
    }
    RankSet set;
    net::Message inner{};
    if (decodeRelayed(bytes, 3, &set, &inner)) {
      set.forEach([&](std::uint32_t r) { EXPECT_LT(r, 3u); });
      EXPECT_LT(inner.body.size(), bytes.size());
    }
  }
}

TEST(Bodies, AShortMessageMakesNoRoomForAllRanks) {
  News news;
  const net::Bytes count = net::ByteWriter().small(1 << 21).take();
  EXPECT_FALSE(decode(count, 1 << 20, &news));
  EXPECT_LT(news.groups.capacity(), 16u);
}

TEST(Bodies, AllCutsAreRefused) {
  News whole;
  whole.groups.push_back(
      {.last = {3, 300, 1, 2}, .described = true, .parting = {}, .ranks = RankSet({{1, 2}})});
  whole.groups.push_back({.inCall = true,
                          .last = {4, 400, 0, 0},
                          .parting = {{2, 200, 1, 1}},
                          .ranks = RankSet({{0, 0}})});
  whole.silences.push_back({5000, RankSet({{2, 2}})});
  const net::Bytes bytes = encode(whole);
  News news;
  ASSERT_TRUE(decode(bytes, 3, &news));
  EXPECT_EQ(encode(news), bytes);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(decode(net::ByteView(bytes).first(n), 3, &news)) << n;
}

TEST(Bodies, ARankIsInOneGroup) {
  News twice;
  for (const RankSet& set : {RankSet({{0, 1}}), RankSet({{1, 2}})})
    twice.groups.push_back({.last = {}, .parting = {}, .ranks = set});
  News news;
  EXPECT_FALSE(decode(encode(twice), 3, &news));
}

// Whoever writes ranges that touch says the same as who writes one.
TEST(RankSet, RangesThatTouchAreOne) {
  const net::Bytes bytes =
      net::ByteWriter().small(2 << 1).small(8).small(0).small(0).small(3).take();
  net::ByteReader reader(bytes);
  RankSet read;
  ASSERT_TRUE(decode(&reader, 300, &read));
  EXPECT_EQ(read, RankSet({{8, 12}}));
}

// Rank 1 is the furthest, and rank 0 has made another first call. Rank 2 has gone another way, too,
// but which is not known yet: it is not told to have gone either.
TEST(Survey, OfAnUnknownWayNothingIsSaid) {
  using Call = PageReport::Call;
  CallTree calls;
  const Call first{.seq = 1, .fingerprint = 30}, second{.seq = 2, .fingerprint = 300},
      other{.seq = 1, .fingerprint = 10};
  calls.add(std::array{first, second});
  calls.add(std::array{other});
  Survey survey;
  const auto doing = [](const Call& call) {
    PageReport page;
    page.callSeq = call.seq;
    page.fingerprint = call.fingerprint;
    return page;
  };
  survey.add(0, doing(other));
  survey.add(1, doing(second));
  survey.add(2, doing({.seq = 2, .fingerprint = 200}));
  for (const News::Group& group : survey.news(calls, false).groups) {
    const std::uint32_t rank = group.ranks.ranges().front().first;
    EXPECT_EQ(group.parting ? group.parting->fingerprint : 0, rank == 0   ? 10u
                                                              : rank == 1 ? 30u
                                                                          : 0u)
        << "rank " << rank;
  }
}

// As ranges or as bits, whichever is less; who is not there is refused.
TEST(RankSet, TravelsInTheShorterForm) {
  std::mt19937 random(1);
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const auto ranks = static_cast<std::uint32_t>(1 + random() % 300);
    const auto share = 1 + random() % 100;
    RankSet set;
    for (std::uint32_t r = 0; r < ranks; ++r)
      if (random() % 100 < share) set.add(r);
    net::ByteWriter writer;
    encode(set, &writer);
    const net::Bytes bytes = writer.take();
    EXPECT_LE(bytes.size(), std::min<std::size_t>(ranks / 8 + 6, 2 + 4 * set.ranges().size()));
    RankSet read;
    net::ByteReader reader(bytes);
    ASSERT_TRUE(decode(&reader, ranks, &read) && reader.done());
    ASSERT_EQ(read, set);
    net::ByteReader again(bytes);
    if (!set.empty()) {
      EXPECT_FALSE(decode(&again, set.ranges().back().last, &read));
    }
  }
}

}  // namespace
}  // namespace weft::control
