// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/heap.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/environment.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "base/threads.h"
#include "transports/doorbell.h"
#include "transports/shm/children.h"
#include "transports/shm/memory.h"

namespace weft::shm {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;
constexpr std::size_t kLeast = std::size_t{64} << 20;  // not worth having below
constexpr const char* kHeapFix = "or weftMemFree what is not needed";

std::atomic<Heap*> current{nullptr};
std::atomic<Heap*> parents{nullptr};
thread_local bool forksPrivate = false;  // from before a fork until after it

std::size_t softLimit(__rlimit_resource what) {
  rlimit limit{};
  const bool known = ::getrlimit(what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? static_cast<std::size_t>(limit.rlim_cur) : ~std::size_t{0};
}

// The machine's memory. But the heaps of all ranks of a host must fit into each one's address space
// (47 bits on x86-64), and should leave most of it to others, also with two ranks a core.
std::size_t wantedBytes() {
  const auto pages = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_PHYS_PAGES)));
  const std::size_t ram = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto cores = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_CONF)));
  const std::size_t space = std::min(std::size_t{1} << 47, softLimit(RLIMIT_AS));
  std::size_t wanted = std::min({roundUp(ram, kGiB), space / (4 * cores), softLimit(RLIMIT_FSIZE)});
  // ThreadSanitizer knows 1.5 TiB for all mappings, and valgrind notes every page of each.
  if (kTsan) wanted = std::min(wanted, 4 * kGiB);
  if (environment("LD_PRELOAD").find("/vgpreload_") != std::string::npos)
    wanted = std::min(wanted, kGiB / 4);
  return wanted / kHugePage * kHugePage;
}

Status noSpace(std::size_t bytes) {
  return Status::error(Code::OutOfMemory, "cannot map ", bytes,
                       " bytes of address space: ", std::strerror(errno),
                       "; fix: ulimit -v unlimited");
}

}  // namespace

Heap::Heap(std::size_t bytes, Fd fd, std::byte* base)
    : bytes_(bytes), base_(base), fd_(std::move(fd)), free_(bytes) {}

Heap::~Heap() { ::munmap(base_, bytes_); }

Status Heap::create(std::size_t bytes, std::unique_ptr<Heap>* out) {
  Fd memory;
  WEFT_TRY(createSparseMemory(bytes, &memory));
  std::byte* const base = mapSparse(memory, bytes, Pages::Huge);
  if (base == nullptr) return noSpace(bytes);
  out->reset(new Heap(bytes, std::move(memory), base));
  return {};
}

std::unique_ptr<Heap> Heap::createLargest() {
  std::unique_ptr<Heap> made;
  const std::size_t wanted = wantedBytes();
  Status status = Status::error(Code::OutOfMemory, "there is room for ", wanted,
                                " bytes only, worth having are ", kLeast,
                                "; fix: ulimit -v unlimited, ulimit -f unlimited");
  for (std::size_t bytes = wanted; bytes >= kLeast && !made; bytes /= 2)
    status = create(bytes / kHugePage * kHugePage, &made);
  if (made) return made;
  static std::atomic_flag said;
  if (!said.test_and_set())
    logInfo("weftMemAlloc gives memory that other processes cannot reach: ", status.text());
  return nullptr;
}

// Without a lock, which a fork could leave locked in the child: of several made at once one stays.
Heap* Heap::own() {
  if (Heap* const made = existing()) return made;
  std::unique_ptr<Heap> mine = createLargest();
  Heap* winner = nullptr;
  if (!mine) return existing();
  if (current.compare_exchange_strong(winner, mine.get(), std::memory_order_acq_rel))
    return mine.release();
  return winner;
}

Heap* Heap::existing() { return current.load(std::memory_order_acquire); }

// What a child keeps seeing as its own is moved memory and the pool; the rest it shares.
void Heap::beforeFork() {
  Heap* const heap = existing();
  forksPrivate = heap != nullptr && (heap->moved_.any() || heap->pool_.any());
  if (forksPrivate) Children::beforeFork();
}

void Heap::inParent() {
  if (std::exchange(forksPrivate, false)) Children::inParent();
}

// In a forked child. What the parent allocated stays mapped, but only the parent may hand out more.
void Heap::leaveToParent() {
  if (std::exchange(forksPrivate, false)) Children::inChild();
  Heap* const heap = current.exchange(nullptr, std::memory_order_acq_rel);
  if (heap == nullptr) return;
  heap->moved_.becomePrivate(heap->fd_.get());
  heap->pool_.becomePrivate(heap->fd_.get());
  heap->fd_.reset();
  heap->older_ = parents.load(std::memory_order_relaxed);
  parents.store(heap, std::memory_order_relaxed);
}

const int Heap::forkHandler_ = ::pthread_atfork(beforeFork, inParent, leaveToParent);

bool Heap::isParents(const void* memory) {
  for (const Heap* heap = parents.load(std::memory_order_relaxed); heap != nullptr;
       heap = heap->older_)
    if (heap->contains(memory)) return true;
  return false;
}

bool Heap::contains(const void* memory) const {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(memory) - reinterpret_cast<std::uintptr_t>(base_);
  return offset < bytes_;
}

Status Heap::populate(std::byte* at, std::size_t bytes) {
  return populatePages(fd_, base_, static_cast<std::size_t>(at - base_), bytes, kHeapFix);
}

std::optional<std::size_t> Heap::take(std::size_t bytes, Use use) {
  if (bytes > bytes_) return {};
  const std::lock_guard lock(mutex_);
  const std::optional<std::size_t> offset =
      free_.take(bytes, bytes < kHugePage ? kPage : kHugePage);
  if (offset) used_[*offset] = {bytes, use};
  return offset;
}

std::byte* Heap::reserve(std::size_t bytes) {
  const std::optional<std::size_t> offset = take(roundUp(bytes, kPage), Use::Reserved);
  return offset ? base_ + *offset : nullptr;
}

Status Heap::allocate(std::size_t bytes, void** memory) {
  *memory = nullptr;
  if (bytes > bytes_) return {};
  bytes = roundUp(bytes, kPage);
  const std::optional<std::size_t> offset = take(bytes, Use::Allocated);
  if (!offset) return {};
  Status filled = checkAvailable(bytes, kHeapFix);
  if (filled.ok()) filled = populate(base_ + *offset, bytes);
  if (filled.ok())
    *memory = base_ + *offset;
  else
    (void)release(base_ + *offset);
  return filled;
}

Status Heap::release(void* memory) { return give(memory, Use::Allocated); }
Status Heap::unreserve(std::byte* place) { return give(place, Use::Reserved); }

// The place is free again only when its pages are gone: they would not be zero. A program that frees
// what is reserved, as a block of the pool, must not take it from those who use it.
Status Heap::give(const void* memory, Use use) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(memory) - base_);
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = used_.find(offset);
    if (found == used_.end() || found->second.use != use)
      return Status::error(Code::InvalidArgument,
                           "ptr did not come from weftMemAlloc, or is freed already");
    bytes = found->second.bytes;
    used_.erase(found);
  }
  WEFT_TRY(freePages(fd_, offset, bytes));
  const std::lock_guard lock(mutex_);
  // Without memory to note it the place is lost, which costs addresses alone.
  (void)withoutExceptions([&] { return free_.give(offset, bytes), Status(); });
  return {};
}

}  // namespace weft::shm
