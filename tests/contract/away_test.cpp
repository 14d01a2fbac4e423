// SPDX-License-Identifier: Apache-2.0
// A rank that is away, in no call, holds nobody up, and misses nothing.
#include <gtest/gtest.h>

#include <thread>

#include "courier.h"

namespace weft::transport {
namespace {

class Away : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Away, testing::ValuesIn(allFabrics()),
                         [](const auto& of) { return of.param.name; });

constexpr std::uint32_t kRanks = 4;
constexpr std::uint32_t kTarget = kRanks - 1;  // on another host than rank 0, where there are two
constexpr std::size_t kSizes[] = {0, 40, 3000, 60000};

// Rank 0's puts, an arrival slot and a lane each, from its own arena, which lies in registered
// memory.
Put putOf(Transport& transport, std::uint32_t i) {
  const WindowLayout& layout = transport.layout();
  std::byte* const from = transport.own().base() + arenaOffset(layout, i, 0);
  fillPattern({from, kSizes[i]}, i);
  return {.peer = kTarget,
          .arrival = arrivalOffset(layout, i, 0),
          .flag = arrivalFlag(i + 1, 0),
          .src = from,
          .bytes = kSizes[i],
          .target = arenaOffset(layout, i, 0)};
}

void requireAll(Courier& courier, Transport& transport) {
  const WindowLayout& layout = transport.layout();
  for (std::uint32_t i = 0; i < std::size(kSizes); ++i) {
    std::byte* const base = transport.own().base();
    courier.await(*reinterpret_cast<ArrivalSlot*>(base + arrivalOffset(layout, i, 0)),
                  arrivalFlag(i + 1, 0));
    requirePattern({base + arenaOffset(layout, i, 0), kSizes[i]}, i);
  }
}

TEST_P(Away, TargetHoldsNobodyUp) {
  runAllWell(GetParam(), kRanks, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(kRanks));
    Courier courier(*transport);
    if (rank.rank == kTarget) transport->releaseProgress();
    rank.barrier();
    if (rank.rank == 0) {
      for (std::uint32_t i = 0; i < std::size(kSizes); ++i)
        REQUIRE(courier.send(putOf(*transport, i)));
      courier.drain();
    }
    rank.barrier();
    if (rank.rank != kTarget) return rank.barrier();
    const ProgressOwnership back(*transport);
    requireAll(courier, *transport);
    rank.barrier();
  });
}

// What has been learned meanwhile is told afterwards, once.
TEST_P(Away, SenderMissesNothing) {
  runAllWell(GetParam(), kRanks, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(kRanks));
    Courier courier(*transport);
    for (std::uint32_t i = 0; rank.rank == 0 && i < std::size(kSizes); ++i) {
      const ProgressOwnership call(*transport);
      REQUIRE(courier.send(putOf(*transport, i)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (rank.rank == 0) {
      const ProgressOwnership call(*transport);
      courier.drain();
    } else if (rank.rank == kTarget) {
      requireAll(courier, *transport);
    }
    const ProgressOwnership goodBye(*transport);
    rank.barrier();
  });
}

// Over wires that connect a pair by what is first put, whoever is to hear of a good-bye has met before.
void meet(Rank& rank, Transport& transport) {
  if (rank.fabric.name != "ofi" && rank.fabric.name != "verbs") return;
  Courier courier(transport);
  if (rank.rank == 0) REQUIRE(courier.send(putOf(transport, 0)));
  if (rank.rank == 0) courier.drain();
  if (rank.rank == kTarget)
    courier.await(*reinterpret_cast<ArrivalSlot*>(transport.own().base() +
                                                  arrivalOffset(transport.layout(), 0, 0)),
                  arrivalFlag(1, 0));
}

// Whoever has ended its transport wants nothing more, and what is still put to it is no error.
TEST_P(Away, NobodyMissesWhoHasLeft) {
  runAllWell(GetParam(), kRanks, [](Rank& rank) {
    auto transport = rank.make(smallLayout(kRanks));
    meet(rank, *transport);
    if (rank.rank != kTarget) transport->releaseProgress();
    rank.barrier();
    if (rank.rank == kTarget) transport.reset();
    rank.barrier();
    if (rank.rank == 0) {
      const ProgressOwnership call(*transport);
      Courier courier(*transport);
      courier.pump();
      for (std::uint32_t i = 0; i < std::size(kSizes); ++i)
        REQUIRE(courier.send(putOf(*transport, i)), transport->lastError().text());
      courier.drain();
      REQUIRE(courier.failed().empty() && courier.linksDown().empty(),
              transport->lastError().text());
    }
    rank.barrier();
  });
}

}  // namespace
}  // namespace weft::transport
