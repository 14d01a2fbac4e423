// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/no_fork.h"
#include "base/status.h"
#include "transports/shm/free_ranges.h"

namespace weft::shm {

class Heap;

// Blocks of the heap for the allocator of a program (weftPoolAlloc): they keep their pages when they
// are given back, for whoever comes next, and after a fork each process has its own. Any thread.
//
// Blocks are cut from regions of the heap, the lowest place first. Of a region those pages are there
// that some block has had. Regions without a block go back to the heap beyond what is worth keeping.
class Pool {
 public:
  explicit Pool(Heap& heap) : heap_(heap) {}

  // Whole pages. nullptr without an error where the heap has no room or no memory.
  Status take(std::size_t bytes, void** memory);
  Status give(void* memory);

  bool any() const { return count_.load(std::memory_order_acquire) != 0; }  // regions
  // In a forked child: its stores are its own from here on.
  void becomePrivate(int heapDescriptor) const;

 private:
  struct Region {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
    std::size_t there = 0;  // from its beginning on, with pages
    std::size_t used = 0;
    FreeRanges free{0};
  };
  struct Block {
    std::size_t bytes = 0;
    Region* region = nullptr;
    std::uint64_t forks = 0;  // before it was taken
  };
  using Blocks = std::map<std::byte*, Block>;

  std::byte* cut(std::size_t bytes);
  Status fill(std::byte* at, const Block& block);
  std::byte* cutFrom(Region& region, std::size_t bytes);
  Region* addRegion(std::size_t bytes);
  void put(std::byte* at, const Block& block);
  void returnUnseen();
  void shrink();

  Heap& heap_;
  mutable ForkSafeMutex mutex_;
  std::map<std::byte*, Region> regions_;  // by base
  Blocks blocks_;                         // taken
  Blocks seenByChildren_;                 // given back, but a child of then lives
  std::size_t used_ = 0;                  // bytes of blocks
  std::size_t kept_ = 0;                  // bytes of regions
  std::atomic<std::size_t> count_{0};
};

}  // namespace weft::shm
