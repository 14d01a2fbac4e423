// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "api/check.h"
#include "api/entry.h"
#include "transports/shm/heap.h"

namespace weft::api {
namespace {

// Pages of this process alone, where the heap cannot be had or has no room.
struct PrivatePages {
  ForkSafeMutex mutex;
  std::map<void*, std::size_t> sizes;
};
PrivatePages& privatePages() { return processWide<PrivatePages>(); }

Status allocatePrivate(void** ptr, std::size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Status::error(Code::OutOfMemory, "cannot allocate ", size,
                         " bytes: ", std::strerror(errno),
                         "; fix: ask for less, or ulimit -v unlimited");
  ::madvise(memory, size, MADV_HUGEPAGE);  // a hint
  const std::lock_guard lock(privatePages().mutex);
  privatePages().sizes[memory] = size;
  *ptr = memory;
  return {};
}

Status allocate(void** ptr, std::size_t size) {
  WEFT_TRY(checkPointer(ptr, "ptr"));
  *ptr = nullptr;
  if (size == 0) return {};
  if (shm::Heap* const heap = shm::Heap::own()) WEFT_TRY(heap->allocate(size, ptr));
  return *ptr != nullptr ? Status() : allocatePrivate(ptr, size);
}

Status release(void* ptr) {
  if (ptr == nullptr || shm::Heap::isParents(ptr)) return {};
  shm::Heap* const heap = shm::Heap::existing();
  if (heap != nullptr && heap->contains(ptr)) return heap->release(ptr);
  const std::lock_guard lock(privatePages().mutex);
  const auto found = privatePages().sizes.find(ptr);
  if (found == privatePages().sizes.end())
    return invalid("ptr did not come from weftMemAlloc, or is freed already");
  ::munmap(ptr, found->second);
  privatePages().sizes.erase(found);
  return {};
}

Status takeBlock(void** ptr, std::size_t size) {
  WEFT_TRY(checkPointer(ptr, "ptr"));
  *ptr = nullptr;
  shm::Heap* const heap = size == 0 ? nullptr : shm::Heap::own();
  return heap == nullptr ? Status() : heap->pool().take(size, ptr);
}

Status giveBlock(void* ptr) {
  if (ptr == nullptr || shm::Heap::isParents(ptr)) return {};
  if (shm::Heap* const heap = shm::Heap::existing()) return heap->pool().give(ptr);
  return invalid("ptr did not come from weftPoolAlloc, which made nothing here");
}

}  // namespace
}  // namespace weft::api

using namespace weft::api;

weftResult_t weftMemAlloc(void** ptr, size_t size) {
  return entry([&] { return allocate(ptr, size); });
}
weftResult_t weftMemFree(void* ptr) {
  return entry([&] { return release(ptr); });
}
weftResult_t weftPoolAlloc(void** ptr, size_t size) {
  return entry([&] { return takeBlock(ptr, size); });
}
weftResult_t weftPoolFree(void* ptr) {
  return entry([&] { return giveBlock(ptr); });
}
