// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/moved.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/text.h"
#include "base/threads.h"
#include "transports/setup.h"
#include "transports/shm/children.h"
#include "transports/shm/heap.h"
#include "transports/shm/memory.h"

namespace weft::shm {
namespace {

constexpr const char* kMoveFix = "or register less";

PageRange pagesInside(const std::byte* memory, std::size_t bytes) {
  const auto from = reinterpret_cast<std::uintptr_t>(memory);
  return {roundUp(from, kPage), (from + bytes) / kPage * kPage};
}

void* pointer(std::uintptr_t at) { return reinterpret_cast<void*>(at); }

// Shows the heap's pages there. Only a process that has no room for one more mapping fails.
bool mapHeap(PageRange pages, int descriptor, std::uint64_t offset, int sharing) {
  return ::mmap(pointer(pages.from), pages.to - pages.from, PROT_READ | PROT_WRITE,
                sharing | MAP_FIXED | MAP_NORESERVE, descriptor,
                static_cast<off_t>(offset)) != MAP_FAILED;
}

void advise(PageRange pages, const PageAdvice& advice) {
  const std::size_t bytes = pages.to - pages.from;
  if (advice.huge) ::madvise(pointer(pages.from), bytes, MADV_HUGEPAGE);
  if (advice.small) ::madvise(pointer(pages.from), bytes, MADV_NOHUGEPAGE);
  if (!advice.dumped) ::madvise(pointer(pages.from), bytes, MADV_DONTDUMP);
}

// Anonymous pages with these bytes take the place of what is mapped from pages.from on, at once: who
// reads meanwhile sees the same. They may be huge where the old ones were: the same remainder.
bool replace(PageRange pages, const void* contents, const PageAdvice& advice) {
  const std::size_t bytes = pages.to - pages.from;
  const std::size_t lead = pages.from % kHugePage;
  std::byte* const room = takeRoom(lead + bytes);
  if (room == nullptr) return false;
  std::byte* const made = room + lead;
  const auto at = reinterpret_cast<std::uintptr_t>(made);
  bool done = ::mprotect(made, bytes, PROT_READ | PROT_WRITE) == 0;
  if (done) {
    advise({at, at + bytes}, advice);
    std::memcpy(made, contents, bytes);
    done = ::mremap(made, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(pages.from)) !=
           MAP_FAILED;
  }
  const int error = errno;
  ::munmap(room, done ? lead : lead + bytes);
  errno = error;
  return done;
}

// A store takes its line from the peers that have read it; what is equal is left to them.
void update(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (std::memcmp(to, from, bytes) != 0) std::memcpy(to, from, bytes);
}

}  // namespace

void HeapAlias::copyIn() const {
  update(here, memory, head);
  update(here + bytes - tail, memory + bytes - tail, tail);
}

void HeapAlias::copyOut() const {
  std::memcpy(memory, here, head);
  std::memcpy(memory + bytes - tail, here + bytes - tail, tail);
}

std::byte* MovedRanges::inHeap(const Range& range) const {
  return range.alias + (range.pages.from - range.from());
}

std::uint64_t MovedRanges::offsetOf(const Range& range) const {
  return static_cast<std::uint64_t>(inHeap(range) - heap_.memory().data());
}

// With its ends, and, from 2 MiB on, at the same remainder as in the application, so that pages may be
// huge in both.
Status MovedRanges::reserve(Range* range) const {
  const std::uintptr_t first = range->from() / kPage * kPage;
  const std::size_t bytes = roundUp(range->to(), kPage) - first;
  const std::size_t lead = bytes < kHugePage ? 0 : first % kHugePage;
  WEFT_TRY(checkAvailable(bytes, kMoveFix));
  range->place = heap_.reserve(lead + bytes);
  if (range->place == nullptr)
    return Status::error(Code::OutOfMemory, "the heap of weftMemAlloc, of ", heap_.memory().size(),
                         " bytes, has no room for ", bytes,
                         " more; fix: weftMemFree or deregister what is not needed");
  range->alias = range->place + lead + (range->from() - first);
  return heap_.populate(range->place + lead, bytes);
}

Status MovedRanges::move(const Range& range) const {
  const PageRange pages = range.pages;
  const std::size_t bytes = pages.to - pages.from;
  std::memcpy(inHeap(range), pointer(pages.from), bytes);
  if (!mapHeap(pages, heap_.descriptor().get(), offsetOf(range), MAP_SHARED)) {
    const Status failed =
        Status::error(Code::OutOfMemory, "cannot map ", bytes,
                      " bytes of the heap of weftMemAlloc: ", std::strerror(errno),
                      "; fix: raise vm.max_map_count");
    (void)replace(pages, inHeap(range), range.advice);
    return failed;
  }
  if (!range.advice.small) ::madvise(pointer(pages.from), bytes, MADV_HUGEPAGE);
  if (!range.advice.dumped) ::madvise(pointer(pages.from), bytes, MADV_DONTDUMP);
#ifdef MADV_POPULATE_WRITE
  ::madvise(pointer(pages.from), bytes, MADV_POPULATE_WRITE);  // or with the first touch
#endif
  return {};
}

Status MovedRanges::overlapping(const Range& other) {
  return Status::error(Code::InvalidUsage, "a part of it is registered already: ", other.bytes,
                       " bytes at ", addressText(other.from()),
                       "; fix: register all of it first, then its parts");
}

Status MovedRanges::add(std::byte* memory, std::size_t bytes, std::uintptr_t* key) {
  const std::lock_guard lock(mutex_);
  Range range{.memory = memory, .bytes = bytes, .pages = pagesInside(memory, bytes), .advice = {}};
  const auto after = ranges_.upper_bound(range.from());
  if (after != ranges_.begin()) {
    Range& before = std::prev(after)->second;
    if (range.to() <= before.to()) {
      ++before.users;
      *key = before.from();
      return {};
    }
    if (range.from() < before.to()) return overlapping(before);
  }
  if (after != ranges_.end() && after->first < range.to()) return overlapping(after->second);
  if (range.pages.from >= range.pages.to)
    return Status::error(Code::InvalidUsage, bytes, " bytes that contain no whole page of ", kPage,
                         " bytes; fix: register longer buffers, or use weftMemAlloc");
  WEFT_TRY(checkMovable(range.pages, &range.advice));
  WEFT_TRY(checkUnpinned());
  Status moved = reserve(&range);
  if (moved.ok()) moved = move(range);
  if (!moved.ok()) {
    if (range.place != nullptr) giveBack(range.place);
    return moved;
  }
  ranges_.emplace(range.from(), range);
  noteChange();
  *key = range.from();
  return {};
}

void MovedRanges::noteChange() {
  changes_.fetch_add(1, std::memory_order_acq_rel);
  count_.store(ranges_.size(), std::memory_order_release);
}

Status MovedRanges::moveBack(const Range& range) const {
  struct stat info {};
  ::fstat(heap_.descriptor().get(), &info);
  if (!showsFile(range.pages, info.st_ino, offsetOf(range)))
    return Status::error(Code::InvalidUsage, range.bytes, " bytes at ", addressText(range.from()),
                         " were freed, unmapped or mapped anew while they were registered; fix: "
                         "weftCommDeregister first");
  if (replace(range.pages, inHeap(range), range.advice)) return {};
  return Status::error(Code::OutOfMemory, "cannot move ", range.bytes,
                       " registered bytes back: ", std::strerror(errno),
                       "; fix: free memory, then deregister again");
}

Status MovedRanges::drop(std::uintptr_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(key);
  if (found == ranges_.end() || --found->second.users != 0) return {};
  const Range range = found->second;
  const Status moved = moveBack(range);
  if (moved.code() == Code::OutOfMemory) {
    found->second.users = 1;
    return moved;
  }
  ranges_.erase(found);
  noteChange();
  if (moved.ok()) giveBack(range.place);
  return moved;
}

// Children that still see the pages must not see what comes next. Without memory to note it the place
// is lost.
void MovedRanges::giveBack(std::byte* place) {
  (void)withoutExceptions([&] { return seenByChildren_.push_back(place), Status(); });
  if (Children::live()) return;
  for (std::byte* const unseen : std::exchange(seenByChildren_, {})) (void)heap_.unreserve(unseen);
}

// The one that begins last before it; or one without bytes.
MovedRanges::Range MovedRanges::rangeOf(std::uintptr_t at) const {
  const std::lock_guard lock(mutex_);
  const auto after = ranges_.upper_bound(at);
  return after == ranges_.begin() ? Range() : std::prev(after)->second;
}

std::optional<HeapAlias> MovedRanges::find(const void* memory, std::size_t bytes) const {
  if (!any()) return {};
  const auto from = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t to = from + bytes;
  thread_local std::array<Seen, 4> seen;  // calls use few buffers, again and again
  Seen& one = seen[(from >> 16) % seen.size()];
  const std::uint64_t changes = changes_.load(std::memory_order_acquire);
  if (one.of != this || one.changes != changes || from < one.range.from() || to > one.range.to())
    one = {this, changes, rangeOf(from)};
  const Range& range = one.range;
  if (from < range.from() || to > range.to() || to < from) return {};
  HeapAlias alias{range.alias + (from - range.from()), range.memory + (from - range.from()), bytes};
  if (from < range.pages.from) alias.head = std::min(bytes, range.pages.from - from);
  if (to > range.pages.to) alias.tail = std::min(bytes - alias.head, to - range.pages.to);
  return alias;
}

void MovedRanges::becomePrivate(int heapDescriptor) const {
  for (const auto& [at, range] : ranges_) {
    if (!mapHeap(range.pages, heapDescriptor, offsetOf(range), MAP_PRIVATE)) continue;
    if (!range.advice.small)
      ::madvise(pointer(range.pages.from), range.pages.to - range.pages.from, MADV_HUGEPAGE);
  }
}

}  // namespace weft::shm
