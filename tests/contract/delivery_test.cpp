// SPDX-License-Identifier: Apache-2.0
// Rules 1 to 8 of transport.h: what is put arrives once, whole, and nowhere else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "courier.h"

namespace weft {
namespace {

class Delivery : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Delivery, testing::ValuesIn(allFabrics()),
                         [](const auto& of) { return of.param.name; });

std::uint64_t messageId(std::uint32_t from, std::uint32_t to, std::uint64_t epoch) {
  return epoch * 64 + from * 8 + to;
}

TEST_P(Delivery, DescribesItself) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const SegmentLayout layout = smallLayout(3);
    const auto transport = rank.make(layout);
    REQUIRE(transport->layout().size() == layout.size());
    REQUIRE(transport->outstanding() == 0);
    REQUIRE(transport->own().control().rank == static_cast<int>(rank.rank));
    REQUIRE(transport->caps().polls == (rank.fabric.decorators > 0 || rank.fabric.wire));
    for (std::uint32_t peer = 0; peer < rank.ranks; ++peer) {
      REQUIRE(bool(transport->view(peer)) == transport->caps().maps);
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
  const SegmentLayout& layout = transport.layout();
  const std::size_t slot = layout.arenaBytes / rank.ranks / 64 * 64;
  const std::uint64_t word = arrivalWord(epoch, epoch - 1);
  std::vector<std::vector<std::byte>> sources;
  Courier courier(transport);
  for (std::uint32_t peer = 0; peer < rank.ranks; ++peer) {
    std::vector<std::byte>& source = sources.emplace_back(bytes + shift);
    const auto message = std::span(source).subspan(shift);
    fillPattern(message, messageId(rank.rank, peer, epoch));
    Put put{.peer = peer,
            .cell = cellOffset(layout, 0, rank.rank),
            .word = word,
            .stamp = messageId(rank.rank, peer, epoch),
            .src = message.data(),
            .bytes = bytes};
    put.target = bytes <= kInlineBytes ? kInCell : arenaOffset(layout, 0, rank.rank * slot + shift);
    courier.send(put);
  }
  for (std::uint32_t from = 0; from < rank.ranks; ++from) {
    const Cell& cell = transport.own().cells()[from];
    courier.await(cell, word);
    REQUIRE(cell.stamp == messageId(from, rank.rank, epoch));
    const std::byte* landed =
        bytes <= kInlineBytes ? cell.inlined : transport.own().arena() + from * slot + shift;
    requirePattern({landed, bytes}, messageId(from, rank.rank, epoch));
  }
  courier.drain();
}

TEST_P(Delivery, CarriesAllBytes) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    SegmentLayout layout = smallLayout(3);
    layout.arenaBytes = 3 * ((std::size_t{1} << 20) + 64);
    const auto transport = rank.make(layout);
    std::uint64_t epoch = 0;
    for (const std::size_t bytes : {0u, 1u, 8u, 47u, 48u, 49u, 64u, 4095u, 4096u, 1u << 20}) {
      for (const std::size_t shift : {0u, 1u, 7u}) {
        exchangeRound(rank, *transport, std::min(bytes, transport->caps().maxPut), shift, ++epoch);
        rank.barrier();  // everybody has read its cells
      }
    }
  });
}

TEST_P(Delivery, ArrivesExactlyOnce) {
  runAllWell(GetParam(), 4, [](Rank& rank) {
    constexpr std::uint32_t kTags = 16;  // a sender
    const SegmentLayout layout = smallLayout(4);
    const auto transport = rank.make(layout);
    Courier courier(*transport);
    for (std::uint64_t epoch = 1; epoch <= 12; ++epoch) {
      const std::uint64_t word = arrivalWord(epoch, epoch - 1);
      const std::uint64_t payload = epoch * 1000 + rank.rank;
      const auto* src = reinterpret_cast<const std::byte*>(&payload);
      for (std::uint32_t tag = 0; tag < kTags; ++tag)
        for (std::uint32_t peer = 0; peer < rank.ranks; ++peer)
          courier.send({.peer = peer,
                        .cell = cellOffset(layout, 1, rank.rank * kTags + tag),
                        .word = word,
                        .stamp = tag,
                        .src = src,
                        .bytes = 8,
                        .target = kInCell});
      for (std::uint32_t tag = 0; tag < rank.ranks * kTags; ++tag) {
        Cell& cell = transport->own().cells()[layout.tags + tag];
        courier.await(cell, word);
        std::uint64_t got = 0;
        std::memcpy(&got, cell.inlined, 8);
        REQUIRE(got == epoch * 1000 + tag / kTags && cell.stamp == tag % kTags);
        cell.word.store(0, std::memory_order_relaxed);
      }
      courier.drain();
      rank.barrier();
      for (int i = 0; i < 10; ++i) courier.pump();
      for (std::uint32_t tag = 0; tag < rank.ranks * kTags; ++tag)
        REQUIRE(transport->own().cells()[layout.tags + tag].word.load() == 0, "came twice");
      rank.barrier();
    }
  });
}

// No barrier at all: kParities invocations in flight, with the credit that rides on each arrival.
TEST_P(Delivery, ReusesCellsAndLandingByEpoch) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    constexpr std::size_t kBytes = 300;
    const SegmentLayout layout = smallLayout(3);
    const auto transport = rank.make(layout);
    Courier courier(*transport);
    std::vector<std::uint64_t> seen(rank.ranks);  // what each peer has completed
    std::vector<std::byte> sources[kParities];
    std::vector<std::uint64_t> cookies[kParities];
    for (std::uint64_t epoch = 1; epoch <= 200; ++epoch) {
      const std::uint32_t parity = epoch % kParities;
      for (const std::uint64_t cookie : cookies[parity]) courier.settle(cookie);
      cookies[parity].clear();
      sources[parity].resize(kBytes);
      fillPattern(sources[parity], messageId(rank.rank, 0, epoch));
      for (std::uint32_t peer = 0; peer < rank.ranks; ++peer) {
        REQUIRE(peer == rank.rank || epoch <= kParities || seen[peer] + kParities >= epoch);
        courier.send({.peer = peer,
                      .cell = cellOffset(layout, parity, rank.rank),
                      .word = arrivalWord(epoch, epoch - 1),
                      .src = sources[parity].data(),
                      .bytes = kBytes,
                      .target = arenaOffset(layout, parity, rank.rank * 512)});
        cookies[parity].push_back(courier.lastCookie());
      }
      for (std::uint32_t from = 0; from < rank.ranks; ++from) {
        const Cell& cell = transport->own().cells()[parity * layout.tags + from];
        courier.await(cell, arrivalWord(epoch, epoch - 1));
        seen[from] = completedOf(cell.word.load());
        requirePattern({transport->own().arena() + parity * layout.arenaBytes + from * 512, kBytes},
                       messageId(from, 0, epoch));
      }
    }
    courier.drain();
    rank.barrier();
  });
}

TEST_P(Delivery, TouchesNothingElse) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    const SegmentLayout layout = smallLayout(2);
    const auto transport = rank.make(layout);
    std::byte* const base = transport->own().base();
    const std::size_t from = layout.cells();
    std::memset(base + from, 0xee, layout.size() - from);
    rank.barrier();

    std::vector<std::byte> source(100);
    fillPattern(source, 5);
    const Put puts[] = {{.peer = 1,
                         .cell = cellOffset(layout, 2, 5),
                         .word = 11,
                         .stamp = 1,
                         .src = source.data(),
                         .bytes = kInlineBytes,
                         .target = kInCell},
                        {.peer = 1,
                         .cell = cellOffset(layout, 3, 63),
                         .word = 12,
                         .stamp = 2,
                         .src = source.data(),
                         .bytes = 100,
                         .target = arenaOffset(layout, 3, 65536 - 100)},
                        {.peer = 1,
                         .cell = layout.pairCells() + 7 * sizeof(Cell),
                         .word = 13,
                         .stamp = 3,
                         .src = source.data(),
                         .bytes = 99,
                         .target = layout.pairArena() + 333},
                        {.peer = 1, .cell = layout.pairCells(), .word = 14, .stamp = 4}};
    Courier courier(*transport);
    for (const Put& put : puts) {
      if (rank.rank == 0)
        courier.send(put);
      else
        courier.await(*reinterpret_cast<const Cell*>(base + put.cell), put.word);
    }
    courier.drain();
    rank.barrier();
    if (rank.rank == 0) return;
    for (const Put& put : puts)
      Courier(*transport).await(*reinterpret_cast<Cell*>(base + put.cell), put.word);
    std::vector<std::byte> expected(layout.size(), std::byte{0xee});
    for (const Put& put : puts) {
      auto& now = *reinterpret_cast<Cell*>(base + put.cell);
      REQUIRE(now.word.load(std::memory_order_acquire) == put.word && now.stamp == put.stamp);
      // Of a cell, what lies behind its payload is nobody's.
      std::copy_n(base + put.cell, sizeof(Cell), expected.data() + put.cell);
      const std::uint64_t landed =
          put.target == kInCell ? put.cell + offsetof(Cell, inlined) : put.target;
      std::copy_n(base + put.cell, sizeof(Cell), expected.data() + put.cell);  // all is the put's
      if (put.bytes != 0) std::copy_n(put.src, put.bytes, expected.data() + landed);
    }
    for (std::size_t i = from; i < layout.size(); ++i)
      REQUIRE(base[i] == expected[i], "byte ", i, " of the segment");
  });
}

TEST_P(Delivery, RefusesAfterSever) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const SegmentLayout layout = smallLayout(3);
    const auto transport = rank.make(layout);
    if (rank.rank == 0) {
      Courier courier(*transport);
      courier.expectFailures = true;
      transport->sever(1);
      REQUIRE(!courier.send({.peer = 1, .cell = cellOffset(layout, 0, 0), .word = 7}));
      REQUIRE(transport->lastError().find("rank 1") != std::string::npos, transport->lastError());
      REQUIRE(courier.send({.peer = 2, .cell = cellOffset(layout, 0, 0), .word = 7}));
      courier.drain();
      REQUIRE(courier.failed().empty());
    }
    if (rank.rank == 2) Courier(*transport).await(transport->own().cells()[0], 7);
    rank.barrier();
    if (rank.rank == 2) Courier(*transport).await(transport->own().cells()[0], 7);
    REQUIRE(transport->own().cells()[0].word.load() == (rank.rank == 2 ? 7 : 0));
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

}  // namespace
}  // namespace weft
