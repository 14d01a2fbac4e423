// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/heap_views.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/no_fork.h"
#include "base/text.h"
#include "transports/mapping.h"
#include "transports/shm/memory.h"

namespace weft::shm {
namespace {

class HeapView final : public mapped::PeerHeap {
 public:
  HeapView(OthersHeap heap, std::shared_ptr<Mapping> room, std::byte* base)
      : heap_(std::move(heap)), room_(std::move(room)), base_(base) {}
  ~HeapView() override {
    if (mapped_ && present()) leaveRoom(base_, heap_.bytes);
  }
  HeapView(const HeapView&) = delete;
  HeapView& operator=(const HeapView&) = delete;

  // False in a child of the process that made it.
  bool present() const { return room_->present(); }
  std::span<std::byte> memory() override {
    if (!mapped_.load(std::memory_order_acquire) && !map()) return {};
    return {base_, heap_.bytes};
  }

 private:
  bool map();

  OthersHeap heap_;
  const std::shared_ptr<Mapping> room_;
  std::byte* const base_;
  std::atomic<bool> mapped_{false};
  ForkSafeMutex mutex_;
};

bool HeapView::map() {
  const std::lock_guard lock(mutex_);
  if (mapped_) return true;
  if (!present()) return false;
  Status status = checkMemory(heap_.memory, heap_.bytes);
  if (status.ok() && (!mapInto(base_, heap_.memory, heap_.bytes, Pages::Huge) ||
                      ::madvise(base_, heap_.bytes, MADV_DONTFORK) != 0))
    status = Status::error(Code::OutOfMemory, std::strerror(errno));
  if (!status.ok()) {
    logWarn("cannot map memory of weftMemAlloc of another rank: ", status.text());
    return false;
  }
  heap_.memory.reset();
  mapped_.store(true, std::memory_order_release);
  return true;
}

struct KnownHeaps {
  ForkSafeMutex mutex;
  std::map<Token, std::weak_ptr<HeapView>> byProcess;

  std::shared_ptr<HeapView> find(const Token& process) const {
    const auto found = byProcess.find(process);
    const std::shared_ptr<HeapView> view =
        found == byProcess.end() ? nullptr : found->second.lock();
    return view && view->present() ? view : nullptr;
  }
};

KnownHeaps& knownHeaps() { return processWide<KnownHeaps>(); }

// For those heaps that have no view yet. What others say of theirs may be anything.
Status takeRoomFor(const std::vector<OthersHeap>& heaps, std::shared_ptr<Mapping>* room) {
  constexpr std::size_t kMost = std::size_t{1} << 56;
  std::size_t bytes = 0;
  for (const OthersHeap& heap : heaps)
    if (!knownHeaps().find(heap.process))
      bytes = std::min(kMost, bytes + roundUp(std::min(heap.bytes, kMost), kHugePage));
  if (bytes == 0) return {};
  *room = std::make_shared<Mapping>(takeRoom(bytes), bytes);
  if ((*room)->base() != nullptr) return {};
  return Status::error(Code::OutOfMemory, "cannot map ", bytes,
                       " bytes of address space: ", std::strerror(errno),
                       "; fix: ulimit -v unlimited");
}

}  // namespace

Status viewHeaps(std::vector<OthersHeap> heaps,
                 std::vector<std::shared_ptr<mapped::PeerHeap>>* out) {
  const std::lock_guard lock(knownHeaps().mutex);
  std::erase_if(knownHeaps().byProcess, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<Mapping> room;
  WEFT_TRY(takeRoomFor(heaps, &room));
  std::byte* next = room ? room->base() : nullptr;
  for (OthersHeap& heap : heaps) {
    const Token process = heap.process;
    const std::size_t bytes = roundUp(heap.bytes, kHugePage);
    std::shared_ptr<HeapView> view = knownHeaps().find(process);
    if (!view) {
      view = std::make_shared<HeapView>(std::move(heap), room, next);
      next += bytes;
      knownHeaps().byProcess[process] = view;
    }
    out->push_back(std::move(view));
  }
  return {};
}

}  // namespace weft::shm
