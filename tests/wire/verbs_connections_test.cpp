// SPDX-License-Identifier: Apache-2.0
// Over verbs a pair is connected by what is first written to it. In the rig's mesh alone.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/deadline.h"
#include "base/text.h"
#include "station.h"

namespace weft::wire {
namespace {

constexpr std::uint32_t kEach = 20;

class VerbsConnections : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<WireCase> wires = wiresUnderTest();
    const auto isVerbs = [](const WireCase& wire) { return wire.fabric.name == "verbs"; };
    if (std::ranges::none_of(wires, isVerbs)) GTEST_SKIP() << "no RDMA device is under test";
  }
  const WireCase verbs_{transport::verbsFabric(), ""};
};

void requireInOrder(const Station& me, std::uint32_t from) {
  REQUIRE(me.heard() == kEach);
  for (std::uint32_t i = 0; i < kEach; ++i)
    REQUIRE(me.completions[i] == std::pair(from, i), "completion ", i, " is ",
            me.completions[i].second);
}

void sendAll(Station& me, std::uint32_t to) {
  for (std::uint32_t i = 0; i < kEach; ++i)
    me.send({.peer = to, .src = me.sources().data(), .bytes = i, .immediate = i});
}

// Rank 2 does not poll at first, which holds up what is for it alone.
TEST_F(VerbsConnections, AreMadeByTheFirstWrite) {
  const Board board;
  transport::runAllWell(verbs_.fabric, 4, [&](transport::Rank& rank) {
    Station me(rank, board);
    const auto connected = [&](std::uint32_t peer) { return me.wire().isConnected(peer); };
    for (std::uint32_t peer = 0; peer < 4; ++peer) REQUIRE(!connected(peer));
    rank.barrier();
    if (me.self() == 0) {
      for (const std::uint32_t peer : {2u, 1u}) sendAll(me, peer);
      me.until("rank 1's", [&] { return me.heard() == 1; });
      REQUIRE(me.wire().isUnsettled() && connected(1) && !connected(2));
    }
    if (me.self() == 1) {
      me.until("rank 0's", [&] { return me.heard() == kEach; });
      requireInOrder(me, 0);
      me.send({.peer = 0, .immediate = 1});
      me.until("its answer", [&] { return me.unanswered() == 0; });
    }
    rank.barrier();
    if (me.self() == 2) me.until("what was kept", [&] { return me.heard() == kEach; });
    if (me.self() == 2) requireInOrder(me, 0);
    me.meet();
    REQUIRE(!me.wire().isUnsettled());
    for (std::uint32_t peer = 0; peer < 4; ++peer)
      REQUIRE(connected(peer) ==
              (peer != me.self() && peer * me.self() == 0 && peer + me.self() < 3));
  });
}

TEST_F(VerbsConnections, BothEndsMayBegin) {
  for (int round = 0; round < 5; ++round) {
    const Board board;
    transport::runAllWell(verbs_.fabric, 2, [&](transport::Rank& rank) {
      Station me(rank, board);
      rank.barrier();
      sendAll(me, 1 - me.self());
      me.until("the other's", [&] { return me.heard() == kEach && me.unanswered() == 0; });
      requireInOrder(me, 1 - me.self());
      me.meet();
    });
  }
}

// What the cable between ranks 0 and 1 loses of what rank 0 sends.
bool lose(const char* share) {
  const char* const cable = "c0p1";
  if (!std::filesystem::exists(std::string("/sys/class/net/") + cable)) return false;
  return std::system(
             text("/bin/tc qdisc replace dev ", cable, " root netem loss ", share).c_str()) == 0;
}

TEST_F(VerbsConnections, AreMadeAlthoughDatagramsAreLost) {
  if (!lose("30%")) GTEST_SKIP() << "no mesh of the rig";
  const Board board;
  transport::runAllWell(verbs_.fabric, 2, [&](transport::Rank& rank) {
    Station me(rank, board);  // pings get through in the end
    rank.barrier();
    if (me.self() == 0) {
      REQUIRE(lose("100%"));
      sendAll(me, 1);
      const Deadline deaf = Deadline::in(200);
      while (!deaf.expired()) me.poll();
      REQUIRE(me.wire().isUnsettled() && !me.wire().isConnected(1) && me.unanswered() == kEach);
      REQUIRE(lose("0%"));
    }
    if (me.self() == 1) me.until("what was lost", [&] { return me.heard() == kEach; });
    if (me.self() == 1) requireInOrder(me, 0);
    me.meet();
  });
  EXPECT_EQ(std::system("/bin/tc qdisc del dev c0p1 root"), 0);
}

// The error of rank 0's first write, once `first` has been done at rank 1.
void expectLinkDown(const transport::Fabric& fabric, const char* why,
                    const std::function<void(std::unique_ptr<Wire>&)>& first) {
  transport::runAllWell(fabric, 2, [&](transport::Rank& rank) {
    const Station::Memory memory;
    WireSetup setup = Station::setupOf(rank, memory);
    setup.timeoutMs = 4000;
    std::unique_ptr<Wire> wire;
    const Status status = rank.fabric.wire(setup, &wire);
    REQUIRE(status.ok(), status.text());
    if (rank.rank == 1) first(wire);
    rank.barrier();
    if (rank.rank == 0) {
      REQUIRE(wire->write({.peer = 1, .cookie = 7}) == WireResult::Accepted);
      REQUIRE(wire->isUnsettled());
    }
    WireEvent event;
    for (const Deadline end = Deadline::in(6000); !end.expired();) {
      if (wire == nullptr || wire->poll(&event, 1) == 0) {
        ::sched_yield();
        continue;
      }
      REQUIRE(event.kind == WireEvent::LinkDown && event.peer == 1);
      const std::string error = wire->lastError().text();
      REQUIRE(error.find(why) != std::string::npos && error.find("rank 1") != std::string::npos &&
                  error.find(":1 -> rc1") != std::string::npos,
              error);
      REQUIRE(wire->write({.peer = 1}) == WireResult::Failed && !wire->isUnsettled());
      return;
    }
    REQUIRE(rank.rank == 1, "no word of it");
  });
}

TEST_F(VerbsConnections, APeerThatIsGoneDoesNotAnswer) {
  expectLinkDown(verbs_.fabric, "no answer to its connection within 4000 ms",
                 [](std::unique_ptr<Wire>& wire) { wire.reset(); });
}

TEST_F(VerbsConnections, APeerThatHasCutTheLinkRefuses) {
  expectLinkDown(verbs_.fabric, "its end refuses to be connected",
                 [](std::unique_ptr<Wire>& wire) { wire->sever(0); });
}

}  // namespace
}  // namespace weft::wire
