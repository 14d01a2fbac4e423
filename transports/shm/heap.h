// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/fd.h"
#include "base/status.h"
#include "transports/mapping.h"
#include "transports/setup.h"
#include "transports/shm/free_ranges.h"
#include "transports/shm/moved.h"
#include "transports/shm/pool.h"

// The memory of weftMemAlloc, which the other ranks of this host map, too: one large sparse memfd a
// process, mapped whole and once by each process that comes to need it (heap_views.h), so that any
// part of it is reachable without another word. It lives until the process ends.
namespace weft::shm {

using namespace transport;

class Heap {
 public:
  // This process's, made when first asked for; nullptr where it cannot be had (said once, at INFO).
  static Heap* own();
  // The same, or nullptr while nobody has asked.
  static Heap* existing();
  // Does it lie in a heap that a child inherited? It stays usable and is its parent's to free.
  static bool isParents(const void* memory);

  static Status create(std::size_t bytes, std::unique_ptr<Heap>* out);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Zeroed memory that is there already, at a multiple of 4 KiB, or of 2 MiB from that size on.
  // nullptr without an error if the heap has no room for it. Any thread.
  Status allocate(std::size_t bytes, void** memory);
  Status release(void* memory);
  // The same without pages, for who knows how to wait for those who use it; they come with
  // populate(). nullptr: there is no room.
  std::byte* reserve(std::size_t bytes);
  Status unreserve(std::byte* place);
  Status populate(std::byte* at, std::size_t bytes);

  bool contains(const void* memory) const;
  std::span<std::byte> memory() const { return {base_, bytes_}; }
  const Fd& descriptor() const { return fd_; }
  MovedRanges& moved() { return moved_; }
  Pool& pool() { return pool_; }

 private:
  Heap(std::size_t bytes, Fd fd, std::byte* base);
  enum class Use { Allocated, Reserved };
  struct Place {
    std::size_t bytes = 0;
    Use use = Use::Allocated;
  };
  std::optional<std::size_t> take(std::size_t bytes, Use use);
  Status give(const void* memory, Use use);
  static void beforeFork();
  static void inParent();
  static void leaveToParent();
  static const int forkHandler_;
  static std::unique_ptr<Heap> createLargest();

  const std::size_t bytes_;
  std::byte* const base_;
  Fd fd_;
  Heap* older_ = nullptr;  // of the process that was forked before
  std::mutex mutex_;
  FreeRanges free_;
  std::map<std::size_t, Place> used_;  // by offset
  MovedRanges moved_{*this};
  Pool pool_{*this};
};

}  // namespace weft::shm
