// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/heap_window.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/no_fork.h"
#include "base/threads.h"
#include "transports/setup.h"
#include "transports/shm/heap.h"
#include "transports/shm/memory.h"
#include "transports/shm/windows.h"

namespace weft::shm {
namespace {

using Flag = std::atomic<std::uint8_t>;
static_assert(sizeof(Flag) == 1);

// Behind the window, one of each rank: it touches this window no more.
Flag& flagOf(std::byte* base, const WindowLayout& layout, std::uint32_t rank) {
  return reinterpret_cast<Flag*>(base + layout.size())[rank];
}

bool hasEnded(const HeapWindow::Process& process) {
  pollfd entry{process ? process->death.get() : -1, POLLIN, 0};
  return entry.fd >= 0 && ::poll(&entry, 1, 0) > 0;
}

// Of this process, left by its owner.
struct Left {
  std::byte* base;
  WindowLayout layout;
  std::vector<HeapWindow::Process> members;
  pid_t owner;
  bool placed;  // on a NUMA node

  bool isFree() const {
    for (std::uint32_t r = 0; r < members.size(); ++r)
      if (flagOf(base, layout, r).load(std::memory_order_acquire) == 0 && !hasEnded(members[r]))
        return false;
    return true;
  }
};

struct Leftovers {
  ForkSafeMutex mutex;
  std::vector<Left> windows;
};

Leftovers& leftovers() { return processWide<Leftovers>(); }

// A child of this process does not see it: its stores would look like its parent's.
void setApart(std::byte* base, std::size_t bytes, bool apart) {
  ::madvise(base, bytes, apart ? MADV_DONTFORK : MADV_DOFORK);
  ::madvise(base, bytes, apart ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
}

void release(const Left& left) {
  if (left.placed) preferAnyNode(left.base, HeapWindow::sizeOf(left.layout));
  setApart(left.base, HeapWindow::sizeOf(left.layout), false);
  (void)Heap::existing()->unreserve(left.base);  // a place that stays taken costs addresses
}

// Gives back the places of those that nobody touches any more.
void sweep() {
  const std::lock_guard lock(leftovers().mutex);
  std::erase_if(leftovers().windows, [](const Left& left) {
    if (left.owner != ::getpid()) return true;  // the parent's
    if (!left.isFree()) return false;
    release(left);
    return true;
  });
}

// What exists from the beginning, and the flags.
Status fill(Heap& heap, std::byte* base, const WindowLayout& layout) {
  constexpr const char* kFix = "or destroy communicators that are not needed";
  const std::size_t flags = HeapWindow::sizeOf(layout) - layout.size();
  WEFT_TRY(checkAvailable(firstBytes(layout) + flags, kFix));
  WEFT_TRY(heap.populate(base + layout.size(), flags));
  return populateFirst(layout, [&](std::size_t from, std::size_t bytes) {
    return heap.populate(base + from, bytes);
  });
}

}  // namespace

std::size_t HeapWindow::sizeOf(const WindowLayout& layout) {
  return layout.size() + roundUp(layout.ranks, kPage);
}

Status HeapWindow::make(const TransportSetup& setup, std::shared_ptr<HeapWindow>* out) {
  sweep();
  const WindowLayout& layout = setup.layout;
  Heap* const heap = Heap::existing();
  std::byte* const base = heap == nullptr ? nullptr : heap->reserve(sizeOf(layout));
  if (base == nullptr) return {};
  setApart(base, sizeOf(layout), true);
  preferNode(base, sizeOf(layout), setup.node);
  auto made = std::make_shared<HeapWindow>(base, setup);
  if (Status filled = fill(*heap, base, layout); !filled.ok()) {
    made->usedBy({});
    return filled;
  }
  PeerInfo info;
  info.rank = setup.rank;
  info.pid = ::getpid();
  initControlPage(info, base);
  *out = std::move(made);
  return {};
}

HeapWindow::HeapWindow(std::byte* base, const TransportSetup& setup)
    : base_(base),
      layout_(setup.layout),
      rank_(setup.rank),
      node_(setup.node),
      owner_(::getpid()) {}

void HeapWindow::usedBy(std::vector<Process> members) {
  members_ = std::move(members);
  known_ = true;
}

// Without memory to note it the place stays taken.
HeapWindow::~HeapWindow() {
  if (owner_ != ::getpid() || !known_) return;
  if (!members_.empty()) flagOf(base_, layout_, rank_).store(1, std::memory_order_release);
  (void)withoutExceptions([&] {
    const std::lock_guard lock(leftovers().mutex);
    leftovers().windows.push_back({base_, layout_, std::move(members_), owner_, node_ >= 0});
    return Status();
  });
  sweep();
}

std::shared_ptr<std::byte> joinHeapWindow(std::byte* base, const WindowLayout& layout,
                                          std::uint32_t rank,
                                          std::shared_ptr<mapped::PeerHeap> heap) {
  Flag* const flag = &flagOf(base, layout, rank);
  return {base, [flag, heap = std::move(heap), owner = ::getpid()](std::byte*) {
            if (owner == ::getpid()) flag->store(1, std::memory_order_release);
          }};
}

}  // namespace weft::shm
