// SPDX-License-Identifier: Apache-2.0
// The decorator is as bad as it says, in the way that it says. (That it keeps the contract is shown
// with all other transports.)
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "courier.h"
#include "transports/faulty/faulty.h"

namespace weft::transport {
namespace {

TEST(FaultySpec, ReadsAllKeys) {
  faulty::Faults faults;
  ASSERT_TRUE(
      faulty::parseFaults("seed=7,hold=0.5,depth=16,delay=3,again=0.2,late=0.3,scribble=1,check=1,"
                          "cut=1000:2,cut=9:0-3,lag=500:1,corrupt=2:1-0,raise=4:1-9",
                          &faults)
          .ok());
  EXPECT_EQ(faults.seed, 7u);
  EXPECT_EQ(faults.hold, 0.5);
  EXPECT_EQ(faults.depth, 16u);
  EXPECT_EQ(faults.delay, 3u);
  EXPECT_EQ(faults.again, 0.2);
  EXPECT_EQ(faults.late, 0.3);
  EXPECT_TRUE(faults.scribble && faults.check);
  ASSERT_EQ(faults.cuts.size(), 2u);
  EXPECT_EQ(faults.cuts[0].number, 1000u);
  EXPECT_EQ(faults.cuts[0].peer, 2u);
  EXPECT_FALSE(faults.cuts[0].from);
  EXPECT_EQ(faults.cuts[1].number, 9u);
  EXPECT_EQ(faults.cuts[1].peer, 3u);
  EXPECT_EQ(faults.cuts[1].from, 0u);
  ASSERT_EQ(faults.lags.size(), 1u);
  EXPECT_EQ(faults.lags[0].number, 500u);
  ASSERT_EQ(faults.corrupts.size(), 1u);
  EXPECT_EQ(faults.corrupts[0].from, 1u);
  ASSERT_EQ(faults.raises.size(), 1u);
  EXPECT_EQ(faults.raises[0].peer, 9u);
  EXPECT_TRUE(faulty::parseFaults("", &faults).ok());
  EXPECT_EQ(faults.hold, 0.0);
}

TEST(FaultySpec, RefusesNonsense) {
  for (const char* spec : {"hold", "hold=", "hold=2", "hold=-1", "again=1", "depth=0", "cut=5",
                           "cut=0:1", "cut=5:", "cut=5:-1", "cut=5:0-", "cut=:1", "seed=x",
                           "seed=1x", "scribble=2", "sneeze=1", "seed=1,,hold=1"}) {
    faulty::Faults faults;
    const Status status = faulty::parseFaults(spec, &faults);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << spec;
    EXPECT_NE(status.text().find("fix:"), std::string::npos) << status.text();
  }
}

Fabric faulty(const std::string& spec) { return {"faulty_local", false, false, spec, 1}; }

// Sends flags 1.. to arrival slots 0.. of rank 1 and lists the slots in the order of arrival.
std::vector<std::uint32_t> arrivalOrder(const std::string& spec, std::uint32_t puts) {
  std::vector<std::uint32_t> order;
  runAllWell(faulty(spec), 2, [&](Rank& rank) {
    const WindowLayout layout = smallLayout(2);
    const auto transport = rank.make(layout);
    const auto look = [&](Rank& peer) {
      const ArrivalSlot* arrivals =
          WindowView(reinterpret_cast<std::byte*>(transport->control(1)), transport->layout())
              .arrivals();
      REQUIRE(peer.rank == 0);
      for (std::uint32_t i = 0; i < puts; ++i)
        if (arrivals[i].flag.load() != 0 && std::find(order.begin(), order.end(), i) == order.end())
          order.push_back(i);
    };
    if (rank.rank == 0) {
      Courier courier(*transport);
      for (std::uint32_t i = 0; i < puts; ++i)
        courier.send({.peer = 1, .arrival = arrivalOffset(layout, 0, i), .flag = i + 1});
      for (look(rank); order.size() < puts; look(rank)) courier.pump();
      courier.drain();
    }
    rank.barrier();
  });
  return order;
}

TEST(Faulty, PermutesBySeed) {
  const auto one = arrivalOrder("seed=1,hold=1,depth=64,delay=40", 40);
  EXPECT_EQ(one, arrivalOrder("seed=1,hold=1,depth=64,delay=40", 40));
  EXPECT_NE(one, arrivalOrder("seed=2,hold=1,depth=64,delay=40", 40));
  EXPECT_FALSE(std::is_sorted(one.begin(), one.end()));
  const auto plain = arrivalOrder("seed=1", 40);
  EXPECT_TRUE(std::is_sorted(plain.begin(), plain.end()));
}

TEST(Faulty, HoldsRefusesAndAnswersLate) {
  runAllWell(faulty("seed=3,hold=1,depth=4,delay=0"), 2, [](Rank& rank) {
    const WindowLayout layout = smallLayout(2);
    const auto transport = rank.make(layout);
    if (rank.rank == 0) {
      const Put put{.peer = 1, .arrival = arrivalOffset(layout, 0, 0), .flag = 1};
      for (int i = 0; i < 4; ++i) REQUIRE(transport->put(put) == PutResult::Pending);
      REQUIRE(transport->put(put) == PutResult::Again, "depth is 4");
      REQUIRE(transport->outstanding() == 4);
      ArrivalSlot* const arrival =
          WindowView(reinterpret_cast<std::byte*>(transport->control(1)), transport->layout())
              .arrivals();
      REQUIRE(arrival->flag.load() == 0, "held, and yet it arrived");
      Event events[8];
      REQUIRE(transport->poll(events, 8) == 4);
      REQUIRE(arrival->flag.load() == 1 && transport->outstanding() == 0);
    }
    rank.barrier();
  });
  runAllWell(faulty("seed=3,again=0.5,late=1,delay=9"), 2, [](Rank& rank) {
    const WindowLayout layout = smallLayout(2);
    const auto transport = rank.make(layout);
    const Put put{.peer = rank.rank, .arrival = arrivalOffset(layout, 0, 0), .flag = 1};
    int again = 0;
    int pending = 0;
    for (int i = 0; i < 60; ++i) {
      const PutResult result = transport->put(put);
      again += result == PutResult::Again;
      pending += result == PutResult::Pending;
    }
    REQUIRE(again > 15 && again < 45 && again + pending == 60, again, " ", pending);
    Event events[64];
    int polls = 0;
    for (int told = 0; told < pending; ++polls) told += transport->poll(events, 64);
    REQUIRE(polls > 1 && polls <= 10, polls);
    rank.barrier();
  });
}

TEST(Faulty, LinksLag) {
  runAllWell(faulty("lag=20000:0-1"), 2, [](Rank& rank) {
    const WindowLayout layout = smallLayout(2);
    const auto transport = rank.make(layout);
    const Put put{.peer = 1 - rank.rank, .arrival = arrivalOffset(layout, 0, 0), .flag = 1};
    const auto began = std::chrono::steady_clock::now();
    const bool lags = transport->put(put) == PutResult::Pending;
    REQUIRE(lags == (rank.rank == 0), "only the link from rank 0 lags");
    Event events[1];
    while (lags && transport->poll(events, 1) == 0) continue;
    REQUIRE(!lags || std::chrono::steady_clock::now() - began >= std::chrono::milliseconds(20));
    rank.barrier();
  });
}

TEST(Faulty, CorruptsOneBitOfOnePut) {
  runAllWell(faulty("seed=5,corrupt=2:0-1"), 2, [](Rank& rank) {
    constexpr std::uint32_t kBytes = 200, kPuts = 3;
    const WindowLayout layout = smallLayout(2);
    const auto transport = rank.make(layout);
    const std::vector<std::byte> source(kBytes, std::byte{0});
    if (rank.rank == 0) {
      const WindowView peer(reinterpret_cast<std::byte*>(transport->control(1)),
                            transport->layout());
      int flipped = 0;
      Courier courier(*transport);
      for (std::uint32_t i = 0; i < kPuts; ++i) {
        courier.send({.peer = 1,
                      .arrival = arrivalOffset(layout, 0, i),
                      .flag = 1,
                      .src = source.data(),
                      .bytes = kBytes,
                      .target = arenaOffset(layout, 0, 0)});
        courier.drain();
        for (std::uint32_t k = 0; k < kBytes; ++k)
          flipped += std::popcount(std::to_integer<unsigned>(peer.arena()[k]));
        REQUIRE(flipped == (i == 0 ? 0 : 1), i, " ", flipped);
      }
    }
    rank.barrier();
  });
}

TEST(Faulty, ScribblesBeforeTheRealBytes) {
  runAllWell(faulty("seed=1,hold=1,scribble=1"), 2, [](Rank& rank) {
    const WindowLayout layout = smallLayout(2);
    const auto transport = rank.make(layout);
    const std::vector<std::byte> source(200, std::byte{7});
    if (rank.rank == 0) {
      const std::byte* const target =
          WindowView(reinterpret_cast<std::byte*>(transport->control(1)), transport->layout())
              .arena();
      const Put put{.peer = 1,
                    .arrival = arrivalOffset(layout, 0, 0),
                    .flag = 1,
                    .src = source.data(),
                    .bytes = 200,
                    .target = arenaOffset(layout, 0, 0)};
      REQUIRE(transport->put(put) == PutResult::Pending);
      REQUIRE(target[0] == std::byte{0xa5} && target[199] == std::byte{0xa5});
      REQUIRE(target[200] == std::byte{0});
      Event event;
      while (transport->poll(&event, 1) == 0) {
      }
      REQUIRE(std::memcmp(target, source.data(), 200) == 0);
    }
    rank.barrier();
  });
}

TEST(Faulty, NoticesAChangedSource) {
  runAllWell(faulty("seed=5,hold=1,check=1"), 1, [](Rank& rank) {
    const WindowLayout layout = smallLayout(1);
    const auto transport = rank.make(layout);
    std::uint64_t payload = 1;
    Courier courier(*transport);
    courier.expectFailures = true;
    courier.send({.peer = 0,
                  .arrival = arrivalOffset(layout, 0, 0),
                  .flag = 1,
                  .src = reinterpret_cast<const std::byte*>(&payload),
                  .bytes = 8,
                  .target = kInlined});
    payload = 2;
    courier.drain();
    REQUIRE(courier.failed().size() == 1);
    REQUIRE(transport->lastError().text().find("seed=5") != std::string::npos,
            transport->lastError().text());
    REQUIRE(transport->lastError().text().find("bug of the caller") != std::string::npos);
  });
}

// The link to rank 1 breaks at the fourth put to it: those that were held fail, others go on.
TEST(Faulty, CutsOneLink) {
  runAllWell(faulty("seed=6,hold=1,depth=8,delay=100,cut=4:1"), 3, [](Rank& rank) {
    const WindowLayout layout = smallLayout(3);
    const auto transport = rank.make(layout);
    if (rank.rank == 0) {
      Courier courier(*transport);
      courier.expectFailures = true;
      for (std::uint32_t i = 0; i < 6; ++i) {
        const bool accepted =
            courier.send({.peer = 1, .arrival = arrivalOffset(layout, 0, i), .flag = 9});
        REQUIRE(accepted == (i < 3), i);
      }
      REQUIRE(courier.send({.peer = 2, .arrival = arrivalOffset(layout, 0, 0), .flag = 9}));
      courier.drain();
      REQUIRE(courier.failed().size() == 3, courier.failed().size());
      REQUIRE(courier.linksDown() == std::vector<std::uint32_t>{1});
      REQUIRE(transport->lastError().text().find("rank 1") != std::string::npos,
              transport->lastError().text());
      std::byte byte{};
      REQUIRE(!transport->putTo(1, 64, &byte, 1) && !transport->getFrom(1, 64, &byte, 1));
      REQUIRE(transport->lastError().text().find("cut") != std::string::npos,
              transport->lastError().text());
    }
    rank.barrier();
    for (std::uint32_t i = 0; i < 6; ++i)
      REQUIRE(transport->own().arrivals()[i].flag.load() == (rank.rank == 2 && i == 0 ? 9 : 0));
  });
}

}  // namespace
}  // namespace weft::transport
