// SPDX-License-Identifier: Apache-2.0
// Transports that branch off from another: the same contract, of some of its ranks, for as long as
// any of them lives; and whose memory their windows lie in afterwards.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "courier.h"
#include "tests/has_libfabric.h"

namespace weft::transport {
namespace {

// Those on one wire, too, and on memory and a wire.
std::vector<Fabric> branchingFabrics(std::vector<Fabric> fabrics) {
  if (std::getenv("FABRICS_UNDER_TEST") != nullptr) return allFabrics();
  std::ranges::copy(wireFabrics(), std::back_inserter(fabrics));
  std::ranges::copy(routedFabrics(), std::back_inserter(fabrics));
  if (test::hasLibfabric()) fabrics.push_back(ofiFabric());
  return fabrics;
}

class Branch : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Branch, testing::ValuesIn(branchingFabrics(bareFabrics())),
                         [](const auto& of) { return of.param.name; });
class BranchOnAWire : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, BranchOnAWire, testing::ValuesIn(branchingFabrics({})),
                         [](const auto& of) { return of.param.name; });

using Members = std::vector<std::uint32_t>;

WindowLayout layoutOf(const Members& members) {
  WindowLayout layout = smallLayout(static_cast<std::uint32_t>(members.size()));
  layout.dense = 2;
  return layout;
}

constexpr int kRounds = 4;

// Of the rounds that a branch may have, those that this rank has not had.
void takePart(Rank& rank, int rounds) {
  std::vector<std::vector<std::byte>> others;
  for (; rounds < kRounds; ++rounds) REQUIRE(rank.exchange({}, &others).ok());
}

// All ranks take part in the exchanges, those of `members` make a branch.
Status tryBranch(Rank& rank, Transport& parent, const Members& members,
                 std::unique_ptr<Transport>* out) {
  const auto me = std::ranges::find(members, rank.rank);
  int rounds = 0;
  TransportSetup setup;
  setup.rank = static_cast<std::uint32_t>(me - members.begin());
  setup.ranks = static_cast<std::uint32_t>(members.size());
  setup.layout = layoutOf(members);
  setup.exchange = [&](auto mine, auto* all) {
    std::vector<std::vector<std::byte>> everybody;
    ++rounds;
    WEFT_TRY(rank.exchange(mine, &everybody));
    all->clear();
    for (const std::uint32_t member : members) all->push_back(everybody[member]);
    return Status();
  };
  const Status made = me == members.end() ? Status() : parent.branch(setup, members, out);
  takePart(rank, rounds);
  return made;
}

std::unique_ptr<Transport> branch(Rank& rank, Transport& parent, const Members& members) {
  std::unique_ptr<Transport> made;
  const Status status = tryBranch(rank, parent, members, &made);
  REQUIRE(status.ok(), status.text());
  REQUIRE(bool(made) == (std::ranges::count(members, rank.rank) == 1));
  return made;
}

// Everybody sends everybody a message that is inlined and one that is staged.
void exchangeMessages(Transport& transport, std::uint32_t self, std::uint64_t flag) {
  const WindowLayout& layout = transport.layout();
  Courier courier(transport);
  std::vector<std::byte> message(1000);
  fillPattern(message, flag + self);
  for (std::uint32_t peer = 0; peer < layout.ranks; ++peer) {
    if (peer == self) continue;
    const auto send = [&](std::uint32_t index, std::size_t bytes, std::uint64_t target) {
      const std::uint32_t slot = layout.regions().slotOf(self, index);
      courier.send({.peer = peer,
                    .arrival = arrivalOffset(layout, 3, slot),
                    .flag = flag,
                    .src = message.data(),
                    .bytes = bytes,
                    .target = target});
    };
    send(0, 40, kInlined);
    send(3, 1000, arenaOffset(layout, 3, self * layout.stagingRegion()));
  }
  courier.drain();
  for (std::uint32_t peer = 0; peer < layout.ranks; ++peer) {
    if (peer == self) continue;
    ArrivalSlot* const lane = transport.own().arrivals() + 3 * layout.arrivalSlots;
    const ArrivalSlot& inlined = lane[layout.regions().slotOf(peer, 0)];
    courier.await(inlined, flag);
    requirePattern({inlined.inlined, 40}, flag + peer);
    courier.await(lane[layout.regions().slotOf(peer, 3)], flag);
    requirePattern(
        {transport.own().arena() + 3 * layout.arenaBytes + peer * layout.stagingRegion(), 1000},
        flag + peer);
  }
}

// All have all of those: the next may come.
void acknowledgeMessages(Transport& transport, std::uint32_t self, std::uint64_t flag) {
  const WindowLayout& layout = transport.layout();
  Courier courier(transport);
  for (std::uint32_t peer = 0; peer < layout.ranks; ++peer)
    if (peer != self)
      courier.send({.peer = peer,
                    .arrival = arrivalOffset(layout, 0, layout.regions().slotOf(self, 1)),
                    .flag = flag,
                    .target = kInlined});
  courier.drain();
  for (std::uint32_t peer = 0; peer < layout.ranks; ++peer)
    if (peer != self)
      courier.await(transport.own().arrivals()[layout.regions().slotOf(peer, 1)], flag);
}

void exchangeMany(Transport& transport, std::uint32_t self) {
  for (std::uint64_t flag = 1; flag < 40; ++flag) {
    exchangeMessages(transport, self, flag);
    acknowledgeMessages(transport, self, flag);
  }
}

std::uint32_t placeIn(const Members& members, std::uint32_t rank) {
  return static_cast<std::uint32_t>(std::ranges::find(members, rank) - members.begin());
}

TEST_P(Branch, CarriesMessagesAndOutlivesItsParent) {
  runAllWell(GetParam(), 4, [](Rank& rank) {
    auto parent = rank.make(smallLayout(4));
    const Members members{3, 0, 1};
    const auto first = branch(rank, *parent, members);
    parent.reset();
    rank.barrier();
    if (first) exchangeMessages(*first, placeIn(members, rank.rank), 5);
    rank.barrier();
    std::unique_ptr<Transport> second;
    if (first) {
      REQUIRE(first->own().control().rank == static_cast<int>(placeIn(members, rank.rank)));
      REQUIRE(first->own().control().pid == ::getpid());
      if (!rank.fabric.wire) {
        REQUIRE(first->control(1)->rank == 1 && first->hasDirect(1));
        REQUIRE((first->deathFd(placeIn(members, 3)) >= 0) ==
                (rank.fabric.processes && rank.rank != 3));
      }
    }
    // A branch of a branch.
    const Members pair{0, 2};
    TransportSetup setup = rank.setup(layoutOf(pair));
    const bool isMember = first && placeIn(members, rank.rank) != 1;
    setup.rank = rank.rank == 1 ? 1 : 0;
    setup.ranks = 2;
    int rounds = 0;
    setup.exchange = [&](auto mine, auto* all) {
      std::vector<std::vector<std::byte>> everybody;
      ++rounds;
      WEFT_TRY(rank.exchange(mine, &everybody));
      *all = {everybody[3], everybody[1]};
      return Status();
    };
    if (isMember) REQUIRE(first->branch(setup, pair, &second).ok() && second);
    takePart(rank, rounds);
    if (second) exchangeMessages(*second, setup.rank, 7);
    if (first) exchangeMessages(*first, placeIn(members, rank.rank), 9);
    rank.barrier();
  });
}

// Both ends of a rank in calls at once, of two threads.
TEST_P(BranchOnAWire, WorksBesideItsParent) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const auto parent = rank.make(layoutOf({0, 1, 2}));
    const Members members{2, 1, 0};
    const auto made = branch(rank, *parent, members);
    std::string failure;
    std::thread other([&] {
      try {
        exchangeMany(*made, placeIn(members, rank.rank));
      } catch (const Failure& problem) {
        failure = problem.what();
      }
    });
    exchangeMany(*parent, rank.rank);
    other.join();
    REQUIRE(failure.empty(), failure);
    rank.barrier();
  });
}

// What comes for an end whose communicator makes no progress is taken in by whoever polls.
TEST_P(BranchOnAWire, HearsThroughItsParent) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const auto parent = rank.make(layoutOf({0, 1, 2}));
    const auto made = branch(rank, *parent, {0, 1, 2});
    const std::uint32_t slot = made->layout().regions().slotOf(2, 0);
    if (rank.rank == 2) {
      Courier courier(*made);
      courier.send({.peer = 0,
                    .arrival = arrivalOffset(made->layout(), 0, slot),
                    .flag = 4,
                    .target = kInlined});
      courier.drain();
    }
    if (rank.rank == 0) Courier(*parent).await(made->own().arrivals()[slot], 4);
    rank.barrier();
  });
}

// Once all have ended, and have heard so. Then others have its place: more often than there are values
// of immediate data for.
TEST_P(BranchOnAWire, EndsWithItsMemory) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const auto parent = rank.make(layoutOf({0, 1, 2}));
    const Members members{1, 2, 0};
    for (std::uint64_t i = 0; i < 20; ++i) {
      auto made = branch(rank, *parent, members);
      exchangeMessages(*made, placeIn(members, rank.rank), 5 + i);
      const std::weak_ptr<std::byte> memory = made->window();
      made.reset();
      const Deadline deadline = Deadline::in(5000);
      for (Event event; !memory.expired() && !deadline.expired();) parent->poll(&event, 1);
      REQUIRE(memory.expired(), "after ", i);
      rank.barrier();
    }
  });
}

// One that this rank cuts is lost for all: else what is on its way would go on.
TEST_P(BranchOnAWire, HearsOfALinkThatAnotherHasCut) {
  runAllWell(GetParam(), 4, [](Rank& rank) {
    const auto parent = rank.make(layoutOf({0, 1, 2, 3}));
    const auto made = branch(rank, *parent, {3, 2, 1, 0});
    if (rank.rank == 0) {
      made->sever(0);
      REQUIRE(made->isDown(0) && parent->isDown(3) && !parent->isDown(2));
      Event event;
      const Deadline deadline = Deadline::in(5000);
      while (parent->poll(&event, 1) == 0 && !deadline.expired()) continue;
      REQUIRE(event.kind == Event::LinkDown && event.peer == 3);
      const std::string why = parent->lastError().text();
      REQUIRE(why.find("another communicator") != std::string::npos, why);
    }
    rank.barrier();
  });
}

class BranchBetweenProcesses : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, BranchBetweenProcesses, testing::Values(bareFabrics()[2]),
                         [](const auto& of) { return of.param.name; });

// The first to leave must not give its window's place to the next one while others may still write
// there.
TEST_P(BranchBetweenProcesses, APlaceIsUsedAgainWhenAllHaveLetGoOfIt) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const auto parent = rank.make(smallLayout(3));
    const Members all{0, 1, 2};
    auto first = branch(rank, *parent, all);
    std::byte* const place = first->own().base();
    exchangeMessages(*first, rank.rank, 5);
    rank.barrier();
    if (rank.rank == 0) first.reset();
    rank.barrier();
    auto second = branch(rank, *parent, all);
    REQUIRE(second->own().base() != place, "what others still have");
    if (rank.rank != 0)
      Courier(*first).send({.peer = 0,
                            .arrival = arrivalOffset(first->layout(), 0, rank.rank),
                            .flag = 77,
                            .target = kInlined});
    rank.barrier();
    exchangeMessages(*second, rank.rank, 3);
    for (std::uint32_t slot = 0; slot < 6; ++slot)
      REQUIRE(second->own().arrivals()[slot].flag.load() == 0, "written by whoever is late");
    first.reset();
    rank.barrier();
    second.reset();
    rank.barrier();
    const auto third = branch(rank, *parent, all);
    REQUIRE(third->own().base() == place, "not used again");
    for (std::uint32_t slot = 0; slot < 64; ++slot)
      for (std::uint32_t lane = 0; lane < kMaxLanes; ++lane)
        REQUIRE(third->own().arrivals()[lane * 64 + slot].flag.load() == 0, "not zeroed");
    rank.barrier();
    exchangeMessages(*third, rank.rank, 1);
    rank.barrier();
  });
}

TEST_P(BranchBetweenProcesses, OneThatHasEndedHoldsNoPlace) {
  const auto outcomes = runRanks(GetParam(), 2, [](Rank& rank) {
    const auto parent = rank.make(smallLayout(2));
    auto first = branch(rank, *parent, {0, 1});
    std::byte* const place = first->own().base();
    const int death = rank.rank == 0 ? ::dup(first->deathFd(1)) : -1;
    rank.barrier();
    if (rank.rank == 1) ::raise(SIGKILL);
    first.reset();
    for (pollfd ended{death, POLLIN, 0}; ::poll(&ended, 1, 10000) < 0;) continue;
    TransportSetup alone = rank.setup(smallLayout(1));
    alone.ranks = 1;
    alone.exchange = [](auto mine, auto* all) {
      all->assign(1, {mine.begin(), mine.end()});
      return Status();
    };
    std::unique_ptr<Transport> next;
    const Members self{0};
    REQUIRE(parent->branch(alone, self, &next).ok() && next);
    REQUIRE(next->own().base() == place, "a dead rank's for ever");
  });
  EXPECT_EQ(outcomes[0].failure, "");
  EXPECT_EQ(outcomes[1].signal, SIGKILL);
}

// All hear that one of them has no memory for its window; the parent goes on.
TEST_P(BranchBetweenProcesses, NoRoomInAHeapIsNoBranchForAll) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    const auto parent = rank.make(smallLayout(2));
    const Members all{0, 1};
    TransportSetup setup = rank.setup(smallLayout(2));
    if (rank.rank == 1) setup.layout.pairBytes = std::size_t{1} << 46;
    std::unique_ptr<Transport> none;
    REQUIRE(parent->branch(setup, all, &none).ok() && !none);
    exchangeMessages(*branch(rank, *parent, all), rank.rank, 2);
    rank.barrier();
  });
}

}  // namespace
}  // namespace weft::transport
