// SPDX-License-Identifier: Apache-2.0
// Memory that peers reach by loads and stores: all of it among threads, the heap among processes.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "courier.h"
#include "transports/shm/heap.h"

namespace weft::transport {
namespace {

class Share : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Share, testing::ValuesIn(mappedFabrics()),
                         [](const auto& of) { return of.param.name; });
class ShareBetweenProcesses : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, ShareBetweenProcesses, testing::ValuesIn(forkedFabrics()),
                         [](const auto& of) { return of.param.name; });

std::byte* fromHeap(std::size_t bytes) {
  shm::Heap* const heap = shm::Heap::own();
  REQUIRE(heap != nullptr);
  void* memory = nullptr;
  const Status status = heap->allocate(bytes, &memory);
  REQUIRE(status.ok() && memory != nullptr, status.text());
  return static_cast<std::byte*>(memory);
}

// Every rank writes a line into every rank's memory and finds all lines in its own.
void requireSameBytes(Rank& rank, const Transport& transport, std::byte* mine) {
  const auto references = rank.share(transport.share(mine, rank.ranks * 8));
  for (std::uint32_t peer = 0; peer < rank.ranks; ++peer) {
    REQUIRE(references[peer] != 0, "rank ", peer);
    std::byte* const there = transport.reach(peer, references[peer]);
    REQUIRE(there != nullptr);
    const std::uint64_t word = 1000 * peer + rank.rank;
    std::memcpy(there + rank.rank * 8, &word, 8);
  }
  rank.barrier();
  for (std::uint32_t peer = 0; peer < rank.ranks; ++peer) {
    std::uint64_t word = 0;
    std::memcpy(&word, mine + peer * 8, 8);
    REQUIRE(word == 1000 * rank.rank + peer, "from rank ", peer, ": ", word);
  }
  rank.barrier();
}

TEST_P(Share, HeapMemoryIsTheSameBytesEverywhere) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    std::byte* const early = fromHeap(5000);
    const auto transport = rank.make(smallLayout(3));
    requireSameBytes(rank, *transport, early + 8);
    requireSameBytes(rank, *transport, fromHeap(5u << 20) + (4u << 20));  // made after the join
    REQUIRE(shm::Heap::own()->release(early).ok());
    requireSameBytes(rank, *transport, fromHeap(5000));
    rank.barrier();
  });
}

// What a rank keeps in its own window for others to read.
TEST_P(Share, WindowsAreReadWhereTheyAreMapped) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    WindowLayout layout = smallLayout(3);
    layout.publishes = 1;
    const auto transport = rank.make(layout);
    REQUIRE(transport->caps().maps);
    for (std::uint32_t lane = 0; lane < kMaxLanes; ++lane) {
      const std::size_t at = layout.published() + lane * layout.publishedBytes();
      REQUIRE(transport->commit(rank.rank, at, layout.stagingRegion()).ok());
      std::memset(transport->own().base() + at, static_cast<int>(4 * rank.rank + lane + 1),
                  layout.stagingRegion());
    }
    rank.barrier();
    for (std::uint32_t peer = 0; peer < 3; ++peer)
      for (std::uint32_t lane = 0; lane < kMaxLanes; ++lane) {
        const std::byte* const there =
            transport->mapped(peer) + layout.published() + lane * layout.publishedBytes();
        const std::byte wanted{static_cast<unsigned char>(4 * peer + lane + 1)};
        REQUIRE(std::count(there, there + layout.stagingRegion(), wanted) ==
                static_cast<std::ptrdiff_t>(layout.stagingRegion()));
      }
    rank.barrier();
  });
}

TEST_P(Share, OtherMemoryIsReachedAmongThreadsOnly) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(2));
    std::vector<std::byte> memory(64);
    REQUIRE(transport->caps().sharesAll == !rank.fabric.processes);
    REQUIRE(transport->caps().shares);
    if (rank.fabric.processes)
      REQUIRE(transport->share(memory.data(), memory.size()) == 0);
    else
      requireSameBytes(rank, *transport, memory.data());
    rank.barrier();
  });
}

TEST_P(ShareBetweenProcesses, WhatLeavesTheHeapIsNotShared) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(2));
    const std::span<std::byte> heap = shm::Heap::own()->memory();
    std::byte* const end = heap.data() + heap.size();
    REQUIRE(transport->share(heap.data(), heap.size()) != 0);
    REQUIRE(transport->share(end - 8, 8) != 0);
    REQUIRE(transport->share(end - 8, 9) == 0);
    REQUIRE(transport->share(end, 0) == 0);
    REQUIRE(transport->share(heap.data() - 1, 8) == 0);
    REQUIRE(transport->share(heap.data() + 1, ~std::size_t{0}) == 0);
    REQUIRE(transport->share(nullptr, 0) == 0);
    rank.barrier();
  });
}

TEST_P(ShareBetweenProcesses, BadReferencesReachNothing) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(2));
    const std::uint64_t size = shm::Heap::own()->memory().size();
    for (std::uint32_t peer = 0; peer < 2; ++peer) {
      for (const std::uint64_t bad : {std::uint64_t{0}, size + 1, size << 8, ~std::uint64_t{0}})
        REQUIRE(transport->reach(peer, bad) == nullptr, "reference ", bad);
      REQUIRE(transport->reach(peer, size) != nullptr);
    }
    rank.barrier();
  });
}

// A peer's heap is mapped once, and as long as one communicator with it lives.
TEST_P(ShareBetweenProcesses, CommunicatorsOfTheSamePeersShareTheView) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    std::byte* const mine = fromHeap(4096);
    auto first = rank.make(smallLayout(2));
    const auto second = rank.make(smallLayout(2));
    const std::uint32_t peer = 1 - rank.rank;
    REQUIRE(first->reach(peer, 1) == second->reach(peer, 1));
    rank.barrier();
    first.reset();
    requireSameBytes(rank, *second, mine);
  });
}

// Leaves this process room for a window and a little more, but for no heap.
void limitAddressSpace() {
  std::size_t kb = 0;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmSize:") status >> kb;
  const rlimit little{(kb << 10) + (32u << 20), RLIM_INFINITY};
  REQUIRE(::setrlimit(RLIMIT_AS, &little) == 0);
}

// One rank that cannot have a heap, or not those of its peers, and nobody shares.
TEST_P(ShareBetweenProcesses, AllOrNone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need much address space";
#endif
  for (const bool hasOwn : {false, true})
    runAllWell(GetParam(), 3, [&](Rank& rank) {
      std::byte* const mine = hasOwn || rank.rank != 1 ? fromHeap(4096) : nullptr;
      if (rank.rank == 1) limitAddressSpace();
      const auto transport = rank.make(smallLayout(3));
      REQUIRE((shm::Heap::existing() != nullptr) == (mine != nullptr));
      REQUIRE(!transport->caps().shares);
      REQUIRE(transport->share(mine, 4096) == 0);
      for (std::uint32_t peer = 0; peer < 3; ++peer) REQUIRE(!transport->reach(peer, 1));
      rank.barrier();
    });
}

}  // namespace
}  // namespace weft::transport
