// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/deadline.h"
#include "station.h"

namespace weft::wire {
namespace {

class Trouble : public testing::TestWithParam<WireCase> {};
INSTANTIATE_TEST_SUITE_P(Wires, Trouble, testing::ValuesIn(wiresUnderTest()),
                         testing::PrintToStringParamName());
class Death : public testing::TestWithParam<WireCase> {};
INSTANTIATE_TEST_SUITE_P(Wires, Death, testing::ValuesIn(forkedWires()),
                         testing::PrintToStringParamName());
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Death);

void expectRefused(Station& me, const WireWrite& write, const char* what) {
  REQUIRE(me.wire().write(write) == WireResult::Failed, what, " was not refused");
  REQUIRE(!me.wire().lastError().ok(), what, " was refused without a word");
}

// Nothing of it happens, and the wire works afterwards.
TEST_P(Trouble, BadArgumentsAreRefused) {
  if (GetParam().fabric.name == "shuffled")
    GTEST_SKIP() << "a wire of the tests, which trusts them";
  runStations(GetParam(), 2, [](Station& me) {
    const std::uint32_t peer = 1 - me.self();
    const WireWrite good{.peer = peer, .src = me.sources().data(), .bytes = 8, .immediate = 1};
    WireWrite bad = good;
    bad.peer = 2;
    expectRefused(me, bad, "a rank that does not exist");
    bad.peer = me.self();
    expectRefused(me, bad, "a write to oneself");
    bad = good;
    bad.rail = me.wire().rails(peer);
    expectRefused(me, bad, "a rail that does not exist");
    bad = good;
    bad.target = Station::kWindowBytes - 7;
    expectRefused(me, bad, "a target that ends outside");
    bad.target = ~std::uint64_t{0} - 3;
    expectRefused(me, bad, "a target whose end overflows");
    bad.region = WireRegion::Bounce;
    bad.target = Station::kBounce;
    expectRefused(me, bad, "a target outside of the bounce buffer");
    bad = good;
    bad.area = 1;
    expectRefused(me, bad, "an area that does not exist");
    bad = good;
    bad.bytes = me.wire().caps().maxWrite + 1;
    expectRefused(me, bad, "more than maxWrite");
    bad = good;
    bad.quiet = true;
    if (!me.wire().caps().ordered) expectRefused(me, bad, "quiet without order");
    bad = good;
    std::vector<std::byte> elsewhere(8);
    bad.src = elsewhere.data();
    if (!me.wire().sendsFrom(bad.src, bad.bytes, 0)) expectRefused(me, bad, "a strange source");
    me.send(good);
    me.until("the good one", [&] { return me.heard() == 1; });
    me.meet();
    REQUIRE(me.heard() == 1 && me.down.empty());
  });
}

// Of a communicator of this rank alone: none of its others may be written to.
TEST_P(Trouble, AnAreaIsOfItsRanksAlone) {
  runStations(GetParam(), 2, [](Station& me) {
    Wire& wire = me.wire();
    std::vector<std::byte> contact(wire.contactBytes());
    if (contact.empty()) return;
    const WireArea area{
        {me.memory(WireRegion::Window), me.memory(WireRegion::Bounce), me.outgoing()},
        {},
        {me.self()}};
    Status status = wire.openArea(1, area, contact);
    REQUIRE(status.ok(), status.text());
    const std::span<const std::byte> mine(contact);
    status = wire.joinArea(1, std::span(&mine, 1));
    REQUIRE(status.ok(), status.text());
    const WireWrite good{
        .peer = 1 - me.self(), .src = me.sources().data(), .bytes = 8, .immediate = 1};
    WireWrite bad = good;
    bad.area = 1;
    if (wire.name() != std::string_view("shuffled"))
      expectRefused(me, bad, "a rank that is not in the area");
    wire.closeArea(1);
    me.send(good);
    me.until("the good one", [&] { return me.heard() == 1; });
    me.meet();
  });
}

// Remote completions, from `first` on, go round among those that are still joined.
void exchangeCompletions(Station& me, const std::vector<std::uint32_t>& members,
                         std::uint32_t first) {
  constexpr std::uint32_t kEach = 50;
  for (std::uint32_t i = 0; i < kEach; ++i)
    for (const std::uint32_t peer : members)
      if (peer != me.self())
        me.send({.peer = peer, .src = me.sources().data(), .bytes = 100, .immediate = first + i});
  me.until("the others' completions", [&] {
    const auto heard = std::ranges::count_if(me.completions, [&](const auto& immediate) {
      return immediate.second >= first && immediate.second < first + kEach;
    });
    return static_cast<std::size_t>(heard) == kEach * (members.size() - 1);
  });
  me.meet(members);
}

TEST_P(Trouble, SeveredLinkIsDeadAndTheOthersLive) {
  runStations(GetParam(), 3, [](Station& me) {
    exchangeCompletions(me, {0, 1, 2}, 1000);
    if (me.self() == 0) {
      me.wire().sever(1);
      expectRefused(me, {.peer = 1, .immediate = 9}, "a write on a severed link");
      const std::string error = me.wire().lastError().text();
      REQUIRE(error.find("rank 1") != std::string::npos, error);
      const ErrorData& data = me.wire().lastError().data();
      REQUIRE(data.who.rank == 1 && data.code == Code::RemoteError, error);
      REQUIRE(me.wire().name() != std::string("ofi") || !data.device.empty(), error);
      me.wire().sever(1);  // again: nothing
    }
    me.meet();
    if (me.self() != 1) exchangeCompletions(me, {0, 2}, 2000);
  });
}

// Rank 2 dies amid traffic. Those who write to it get LinkDown, or nothing; the other links work.
TEST_P(Death, OfAPeerLeavesTheOtherLinks) {
  const WireCase& wire = GetParam();
  if (const std::string why = unavailable(wire); !why.empty()) GTEST_SKIP() << why;
  setEnvironment(wire);
  const Board board;
  const auto outcomes = transport::runRanks(wire.fabric, 4, [&](transport::Rank& rank) {
    Station me(rank, board);
    const std::size_t bytes = std::min<std::size_t>(me.wire().caps().maxWrite, 30000);
    exchangeCompletions(me, {0, 1, 2, 3}, 1000);
    if (me.self() == 2) {
      for (int i = 0; i < 10; ++i)
        (void)me.attempt({.peer = 0, .src = me.sources().data(), .bytes = bytes, .immediate = 1});
      ::kill(::getpid(), SIGKILL);
    }
    const Deadline soon = Deadline::in(3000);
    for (std::uint32_t i = 0; i < Station::kCompletions / 2 && !soon.expired();) {
      const WireResult result =
          me.attempt({.peer = 2, .src = me.sources().data(), .bytes = bytes, .immediate = 1});
      if (result == WireResult::Failed) break;
      i += result == WireResult::Accepted;
      me.poll();
    }
    exchangeCompletions(me, {0, 1, 3}, 2000);
    for (const std::uint32_t peer : me.down) REQUIRE(peer == 2, me.downText);
    if (!me.down.empty()) REQUIRE(me.downText.find("rank 2") != std::string::npos, me.downText);
  });
  for (const std::uint32_t rank : {0u, 1u, 3u}) {
    EXPECT_EQ(outcomes[rank].failure, "") << "rank " << rank;
    EXPECT_EQ(outcomes[rank].signal, 0) << "rank " << rank;
  }
  EXPECT_EQ(outcomes[2].signal, SIGKILL);
}

}  // namespace
}  // namespace weft::wire
