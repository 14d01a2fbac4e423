// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/no_fork.h"
#include "base/status.h"
#include "transports/shm/movable.h"

namespace weft::shm {

class Heap;

// Where memory of the application lies in the heap. What shares a page with something else is not
// moved: of it the heap has a copy, which who uses it brings up to date.
struct HeapAlias {
  std::byte* here = nullptr;
  std::byte* memory = nullptr;  // the application's
  std::size_t bytes = 0;
  std::size_t head = 0, tail = 0;  // so many bytes are copies

  void copyIn() const;
  void copyOut() const;
};

// Memory of the application whose whole pages lie in the heap, at the addresses that it has
// (weftCommRegister): its contents were copied into pages of the heap, and these mapped in place of
// the old ones. The heap's own mapping shows them, too, with room for the ends around them.
class MovedRanges {
 public:
  explicit MovedRanges(Heap& heap) : heap_(heap) {}

  // Moves the range, or counts one more user of one that contains it; *key is for drop(). Nobody may
  // write to it meanwhile. Needs as much memory again while it copies. InvalidArgument: there is
  // nothing mapped; other errors say why it stays where it is.
  Status add(std::byte* memory, std::size_t bytes, std::uintptr_t* key);
  // The last user: moves it back. OutOfMemory: it stays, and so does its user. InvalidUsage: it is
  // not there any more; its place in the heap is lost.
  Status drop(std::uintptr_t key);

  bool any() const { return count_.load(std::memory_order_acquire) != 0; }
  // Nothing where a part of it is not in one range.
  std::optional<HeapAlias> find(const void* memory, std::size_t bytes) const;

  // In a forked child: its stores are its own from here on.
  void becomePrivate(int heapDescriptor) const;

 private:
  struct Range {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    PageRange pages;             // that were moved
    std::byte* place = nullptr;  // in the heap
    std::byte* alias = nullptr;  // of `memory`
    PageAdvice advice;
    std::size_t users = 1;

    std::uintptr_t from() const { return reinterpret_cast<std::uintptr_t>(memory); }
    std::uintptr_t to() const { return from() + bytes; }
  };
  // What a thread has found last.
  struct Seen {
    const MovedRanges* of = nullptr;
    std::uint64_t changes = 0;
    Range range;
  };
  using Ranges = std::map<std::uintptr_t, Range>;  // by from()

  static Status overlapping(const Range& other);
  Range rangeOf(std::uintptr_t at) const;
  Status reserve(Range* range) const;
  Status move(const Range& range) const;
  Status moveBack(const Range& range) const;
  std::byte* inHeap(const Range& range) const;
  std::uint64_t offsetOf(const Range& range) const;
  void giveBack(std::byte* place);
  void noteChange();

  Heap& heap_;
  mutable ForkSafeMutex mutex_;
  Ranges ranges_;
  std::vector<std::byte*> seenByChildren_;  // places
  std::atomic<std::size_t> count_{0};
  static inline std::atomic<std::uint64_t> changes_{
      0};  // of any, so that none is taken for another
};

}  // namespace weft::shm
