// SPDX-License-Identifier: Apache-2.0
// What the server decides, without sockets and clocks.
#include "control/control_state.h"

#include <random>

#include "control/bodies.h"
#include "remote_world.h"

namespace weft::control {
namespace {

using namespace weft::test;
using Loss = ControlState::Loss;

// A server's state with everybody seated, and what it has sent since.
struct Board {
  explicit Board(std::uint32_t ranks, std::uint32_t perHost = 1) : board(namesOf(ranks, perHost)) {
    for (std::uint32_t r = 0; r < ranks; ++r) board.seat(r);
    (void)sent();
  }
  std::vector<ControlState::Outgoing> sent() {
    std::vector<ControlState::Outgoing> all;
    while (auto out = board.take()) all.push_back(*out);
    return all;
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
      lines.push_back(text(ending.rank, ": ", ending.why.text()));
    }
    return lines;
  }
  ControlState board;
  const Clock::time_point start = Clock::now();
  Clock::time_point after(int ms) const { return start + milliseconds(ms); }
};

PageReport did(std::uint64_t calls) {
  PageReport page;
  page.callSeq = calls;
  return page;
}

using Ranks = std::vector<std::uint32_t>;

TEST(ControlState, AQuestionGoesToAllAndTheAnswersToTheAsker) {
  Board b(3);
  b.board.query(1, b.start);
  EXPECT_EQ(b.receiversOf(net::MessageType::Query), (Ranks{0, 1, 2}));
  for (std::uint32_t r = 0; r < 3; ++r) {
    EXPECT_TRUE(b.sent().empty());
    b.board.report(r, did(r), b.start);
  }
  const auto sent = b.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rank, 1u);
  News news;
  ASSERT_TRUE(decode(*sent[0].body, 3, &news));
  ASSERT_EQ(news.entries.size(), 3u);
  EXPECT_EQ(news.entries[2].page.callSeq, 2u);
}

TEST(ControlState, OneRoundServesAllWhoAskMeanwhile) {
  Board b(3);
  b.board.query(1, b.start);
  b.board.query(2, b.start);
  b.board.query(0, b.start);
  EXPECT_EQ(b.receiversOf(net::MessageType::Query).size(), 3u);
  for (std::uint32_t r = 0; r < 3; ++r) b.board.report(r, did(1), b.start);
  EXPECT_EQ(b.receiversOf(net::MessageType::Report), (Ranks{0, 1, 2}));
}

TEST(ControlState, WhoDoesNotAnswerIsReportedAndNotAskedAgain) {
  Board b(2);
  b.board.query(0, b.start);
  b.board.report(0, did(1), b.start);
  (void)b.sent();
  ASSERT_TRUE(b.board.nextTick().has_value());
  b.board.tick(*b.board.nextTick());
  EXPECT_EQ(b.receiversOf(net::MessageType::Report), (Ranks{0}));
  b.board.query(0, b.after(3000));
  EXPECT_EQ(b.receiversOf(net::MessageType::Query), (Ranks{0}));
  b.board.report(0, did(1), b.after(3000));
  b.board.tick(b.after(3100));
  const auto sent = b.sent();
  ASSERT_EQ(sent.size(), 1u);
  News news;
  ASSERT_TRUE(decode(*sent[0].body, 2, &news));
  EXPECT_EQ(news.entries[1].silenceMs, 3100u);
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

TEST(ControlState, AGoodbyeIsNoEndIfTheRankHasLeft) {
  Board b(3);
  PageReport left = did(4);
  left.left = true;
  b.board.report(1, left, b.start);
  b.board.bye(1, b.start);
  b.board.report(2, did(4), b.start);
  b.board.bye(2, b.start);
  b.board.tick(b.after(1000));
  const auto endings = b.endings();
  ASSERT_EQ(endings.size(), 1u);
  expectHas(endings[0], "2: rank 2");
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
  for (const std::uint32_t r : {1u, 2u}) b.board.report(r, left, b.start);
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
  ASSERT_TRUE(decode(encode(readPage(page)), &report));
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
      for (const News::Entry& entry : news.entries) EXPECT_LT(entry.rank, 3u);
    }
    if (decode(bytes, 3, &ending)) {
      EXPECT_LT(ending.rank, 3u);
    }
  }
}

TEST(Bodies, AShortMessageMakesNoRoomForAllRanks) {
  News news;
  const net::Bytes count = net::ByteWriter().number<std::uint32_t>(1 << 20).take();
  EXPECT_FALSE(decode(count, 1 << 20, &news));
  EXPECT_LT(news.entries.capacity(), 16u);
}

TEST(Bodies, AllCutsAreRefused) {
  const net::Bytes whole = encode(News{{{1, 5, did(3)}, {2, 0, did(4)}}});
  News news;
  ASSERT_TRUE(decode(whole, 3, &news));
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(decode(net::ByteView(whole).first(n), 3, &news)) << n;
}

}  // namespace
}  // namespace weft::control
