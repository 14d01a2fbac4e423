// SPDX-License-Identifier: Apache-2.0
// Rules 1 to 8 of transport.h: what is put arrives once, whole, and nowhere else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "courier.h"

namespace weft::transport {
namespace {

class Delivery : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Delivery, testing::ValuesIn(allFabrics()),
                         [](const auto& of) { return of.param.name; });

std::uint64_t messageId(std::uint32_t from, std::uint32_t to, std::uint64_t epoch) {
  return epoch * 64 + from * 8 + to;
}

TEST_P(Delivery, DescribesItself) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const WindowLayout layout = smallLayout(3);
    const auto transport = rank.make(layout);
    REQUIRE(transport->layout().size() == layout.size());
    REQUIRE(transport->outstanding() == 0);
    REQUIRE(transport->own().control().rank == static_cast<int>(rank.rank));
    REQUIRE(transport->caps().mirrors == bool(rank.fabric.wire));
    REQUIRE(transport->caps().polls == (rank.fabric.decorators > 0 || rank.fabric.wire));
    for (std::uint32_t peer = 0; peer < rank.ranks; ++peer) {
      REQUIRE(bool(transport->view(peer)) == (!rank.fabric.wire && rank.fabric.decorators == 0));
      if (!transport->isMirrored(peer))
        REQUIRE(transport->control(peer)->rank == static_cast<int>(peer));
      const bool near = rank.fabric.routed && peer / 2 == rank.rank / 2;
      REQUIRE(transport->isMirrored(peer) == (rank.fabric.wire && !near && peer != rank.rank));
      const bool elsewhere = rank.fabric.processes && peer != rank.rank && !rank.fabric.wire;
      REQUIRE((transport->deathFd(peer) >= 0) == elsewhere, "peer ", peer);
      REQUIRE((transport->statFd(peer) >= 0) == elsewhere, "peer ", peer);
    }
    rank.barrier();
  });
}

// Every rank to every rank, itself included, in one round. `shift` unaligns source and target.
void exchangeRound(Rank& rank, Transport& transport, std::size_t bytes, std::size_t shift,
                   std::uint64_t epoch) {
  const WindowLayout& layout = transport.layout();
  const std::size_t slot = layout.arenaBytes / rank.ranks / 64 * 64;
  const std::uint64_t flag = arrivalFlag(epoch, epoch - 1);
  std::vector<std::vector<std::byte>> sources;
  Courier courier(transport);
  for (std::uint32_t peer = 0; peer < rank.ranks; ++peer) {
    std::vector<std::byte>& source = sources.emplace_back(bytes + shift);
    const auto message = std::span(source).subspan(shift);
    fillPattern(message, messageId(rank.rank, peer, epoch));
    Put put{.peer = peer,
            .arrival = arrivalOffset(layout, 0, rank.rank),
            .flag = flag,
            .tag = messageId(rank.rank, peer, epoch),
            .src = message.data(),
            .bytes = bytes};
    put.target =
        bytes <= kInlineBytes ? kInlined : arenaOffset(layout, 0, rank.rank * slot + shift);
    if (epoch % 2 == 0) transport.expectPut(peer, put.arrival, put.target, bytes);
    courier.send(put);
  }
  for (std::uint32_t from = 0; from < rank.ranks; ++from) {
    const ArrivalSlot& arrival = transport.own().arrivals()[from];
    courier.await(arrival, flag);
    REQUIRE(arrival.tag == messageId(from, rank.rank, epoch));
    const std::byte* brought =
        bytes <= kInlineBytes ? arrival.inlined : transport.own().arena() + from * slot + shift;
    requirePattern({brought, bytes}, messageId(from, rank.rank, epoch));
  }
  courier.drain();
}

TEST_P(Delivery, CarriesAllBytes) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    WindowLayout layout = smallLayout(3);
    layout.arenaBytes = 3 * ((std::size_t{1} << 20) + 64);
    const auto transport = rank.make(layout);
    std::uint64_t epoch = 0;
    for (const std::size_t bytes : {0u, 1u, 8u, 47u, 48u, 49u, 64u, 4095u, 4096u, 1u << 20}) {
      for (const std::size_t shift : {0u, 1u, 7u}) {
        exchangeRound(rank, *transport, std::min(bytes, transport->caps().maxPut), shift, ++epoch);
        rank.barrier();  // everybody has read its arrival slots
      }
    }
  });
}

TEST_P(Delivery, ArrivesExactlyOnce) {
  runAllWell(GetParam(), 4, [](Rank& rank) {
    constexpr std::uint32_t kTags = 16;  // a sender
    const WindowLayout layout = smallLayout(4);
    const auto transport = rank.make(layout);
    Courier courier(*transport);
    for (std::uint64_t epoch = 1; epoch <= 12; ++epoch) {
      const std::uint64_t flag = arrivalFlag(epoch, epoch - 1);
      const std::uint64_t payload = epoch * 1000 + rank.rank;
      const auto* src = reinterpret_cast<const std::byte*>(&payload);
      for (std::uint32_t tag = 0; tag < kTags; ++tag)
        for (std::uint32_t peer = 0; peer < rank.ranks; ++peer)
          courier.send({.peer = peer,
                        .arrival = arrivalOffset(layout, 1, rank.rank * kTags + tag),
                        .flag = flag,
                        .tag = tag,
                        .src = src,
                        .bytes = 8,
                        .target = kInlined});
      for (std::uint32_t tag = 0; tag < rank.ranks * kTags; ++tag) {
        ArrivalSlot& arrival = transport->own().arrivals()[layout.arrivalSlots + tag];
        courier.await(arrival, flag);
        std::uint64_t got = 0;
        std::memcpy(&got, arrival.inlined, 8);
        REQUIRE(got == epoch * 1000 + tag / kTags && arrival.tag == tag % kTags);
        arrival.flag.store(0, std::memory_order_relaxed);
      }
      courier.drain();
      rank.barrier();
      for (int i = 0; i < 10; ++i) courier.pump();
      for (std::uint32_t tag = 0; tag < rank.ranks * kTags; ++tag)
        REQUIRE(transport->own().arrivals()[layout.arrivalSlots + tag].flag.load() == 0,
                "came twice");
      rank.barrier();
    }
  });
}

// No barrier at all: kMaxLanes invocations in flight, with the credit that rides on each arrival.
void runEpochs(Rank& rank, Transport& transport, std::uint64_t before, std::uint64_t count) {
  constexpr std::size_t kBytes = 300;
  const WindowLayout& layout = transport.layout();
  Courier courier(transport);
  std::vector<std::uint64_t> seen(rank.ranks, before);  // what each peer has completed
  std::vector<std::byte> sources[kMaxLanes];
  std::vector<std::uint64_t> cookies[kMaxLanes];
  for (std::uint64_t epoch = before + 1; epoch <= before + count; ++epoch) {
    const std::uint32_t lane = epoch % kMaxLanes;
    for (const std::uint64_t cookie : cookies[lane]) courier.settle(cookie);
    cookies[lane].clear();
    sources[lane].resize(kBytes);
    fillPattern(sources[lane], messageId(rank.rank, 0, epoch));
    for (std::uint32_t peer = 0; peer < rank.ranks; ++peer) {
      REQUIRE(peer == rank.rank || seen[peer] + kMaxLanes >= epoch);
      courier.send({.peer = peer,
                    .arrival = arrivalOffset(layout, lane, rank.rank),
                    .flag = arrivalFlag(epoch, epoch - 1),
                    .src = sources[lane].data(),
                    .bytes = kBytes,
                    .target = arenaOffset(layout, lane, rank.rank * 512)});
      cookies[lane].push_back(courier.lastCookie());
    }
    for (std::uint32_t from = 0; from < rank.ranks; ++from) {
      const ArrivalSlot& arrival = transport.own().arrivals()[lane * layout.arrivalSlots + from];
      courier.await(arrival, arrivalFlag(epoch, epoch - 1));
      seen[from] = completedOf(arrival.flag.load());
      requirePattern({transport.own().arena() + lane * layout.arenaBytes + from * 512, kBytes},
                     messageId(from, 0, epoch));
    }
  }
  courier.drain();
}

TEST_P(Delivery, ReusesArrivalSlotsAndStagingByEpoch) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(3));
    runEpochs(rank, *transport, 0, 200);
    rank.barrier();
    for (const unsigned bits : {28u, 32u, 40u}) {
      runEpochs(rank, *transport, (std::uint64_t{1} << bits) - 5, 20);
      rank.barrier();
    }
  });
}

// From rank 0 to rank 1: into an arrival slot, the end of the arena, the memory of pairs, nothing.
std::vector<Put> putsOfEachKind(const WindowLayout& layout, const std::byte* source) {
  return {{.peer = 1,
           .arrival = arrivalOffset(layout, 2, 5),
           .flag = 11,
           .tag = 1,
           .src = source,
           .bytes = kInlineBytes,
           .target = kInlined},
          {.peer = 1,
           .arrival = arrivalOffset(layout, 3, 63),
           .flag = 12,
           .tag = 2,
           .src = source,
           .bytes = 100,
           .target = arenaOffset(layout, 3, 65536 - 100)},
          {.peer = 1,
           .arrival = layout.pairArrivals() + 7 * sizeof(ArrivalSlot),
           .flag = 13,
           .tag = 3,
           .src = source,
           .bytes = 99,
           .target = layout.pairArena() + 333},
          {.peer = 1, .arrival = layout.pairArrivals(), .flag = 14, .tag = 4}};
}

// The window at `base`, which was `empty`, with what the puts may write. Of an arrival slot, what
// lies behind its payload is nobody's.
std::vector<std::byte> windowAfter(const std::vector<Put>& puts, const std::byte* base,
                                   std::vector<std::byte> empty) {
  for (const Put& put : puts) {
    std::copy_n(base + put.arrival, sizeof(ArrivalSlot), empty.data() + put.arrival);
    const std::uint64_t brought =
        put.target == kInlined ? put.arrival + offsetof(ArrivalSlot, inlined) : put.target;
    if (put.bytes != 0) std::copy_n(put.src, put.bytes, empty.data() + brought);
  }
  return empty;
}

TEST_P(Delivery, TouchesNothingElse) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    const WindowLayout layout = smallLayout(2);
    const auto transport = rank.make(layout);
    std::byte* const base = transport->own().base();
    const std::size_t from = layout.arrivals();
    std::memset(base + from, 0xee, layout.size() - from);
    rank.barrier();

    std::vector<std::byte> source(100);
    fillPattern(source, 5);
    const std::vector<Put> puts = putsOfEachKind(layout, source.data());
    Courier courier(*transport);
    for (const Put& put : puts) {
      if (rank.rank == 0)
        courier.send(put);
      else
        courier.await(*reinterpret_cast<const ArrivalSlot*>(base + put.arrival), put.flag);
    }
    courier.drain();
    rank.barrier();
    if (rank.rank == 0) return;
    for (const Put& put : puts) {
      const auto& now = *reinterpret_cast<const ArrivalSlot*>(base + put.arrival);
      REQUIRE(now.flag.load(std::memory_order_acquire) == put.flag && now.tag == put.tag);
    }
    const std::vector<std::byte> expected =
        windowAfter(puts, base, std::vector<std::byte>(layout.size(), std::byte{0xee}));
    for (std::size_t i = from; i < layout.size(); ++i)
      REQUIRE(base[i] == expected[i], "byte ", i, " of the window");
  });
}

TEST_P(Delivery, RefusesAfterSever) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const WindowLayout layout = smallLayout(3);
    const auto transport = rank.make(layout);
    if (rank.rank == 0) {
      Courier courier(*transport);
      courier.expectFailures = true;
      transport->sever(1);
      REQUIRE(!courier.send({.peer = 1, .arrival = arrivalOffset(layout, 0, 0), .flag = 7}));
      REQUIRE(transport->lastError().text().find("rank 1") != std::string::npos,
              transport->lastError().text());
      REQUIRE(courier.send({.peer = 2, .arrival = arrivalOffset(layout, 0, 0), .flag = 7}));
      courier.drain();
      REQUIRE(courier.failed().empty());
    }
    if (rank.rank == 2) Courier(*transport).await(transport->own().arrivals()[0], 7);
    rank.barrier();
    if (rank.rank == 2) Courier(*transport).await(transport->own().arrivals()[0], 7);
    REQUIRE(transport->own().arrivals()[0].flag.load() == (rank.rank == 2 ? 7 : 0));
  });
}

// What a rank has completed is told to whoever cannot read its control page.
TEST_P(Delivery, TellsWhatIsComplete) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(3));
    Courier courier(*transport);
    constexpr std::uint64_t kStep = (std::uint64_t{1} << 26) - 3;
    for (std::uint64_t epoch = kStep; epoch < 10 * kStep;
         epoch += kStep) {  // the wire's wrap round
      transport->own().control().completed.store(epoch, std::memory_order_release);
      for (std::uint32_t peer = 0; peer < rank.ranks; ++peer)
        if (peer != rank.rank) courier.tell(peer, epoch);
      for (std::uint32_t peer = 0; peer < rank.ranks; ++peer) courier.awaitCompleted(peer, epoch);
      rank.barrier();
    }
    rank.barrier();
  });
}

// However long two ranks have told each other nothing: 28 bits of an epoch travel.
TEST_P(Delivery, TellsAfterALongSilence) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(3));
    Courier courier(*transport);
    for (const unsigned bits : {27u, 28u, 29u, 32u, 40u, 55u}) {
      const std::uint64_t epoch = (std::uint64_t{1} << bits) - 5 + rank.rank;
      transport->own().control().completed.store(epoch, std::memory_order_release);
      rank.barrier();
      for (std::uint32_t peer = 0; peer < rank.ranks; ++peer)
        if (peer != rank.rank) courier.tell(peer, epoch);
      for (std::uint32_t peer = 0; peer < rank.ranks; ++peer)
        courier.awaitCompleted(peer, epoch + peer - rank.rank);
      courier.drain();
      rank.barrier();
    }
  });
}

}  // namespace
}  // namespace weft::transport
