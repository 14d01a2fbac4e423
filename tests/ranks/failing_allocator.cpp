// SPDX-License-Identifier: Apache-2.0
#include "failing_allocator.h"

#include <pthread.h>
#include <stdlib.h>

#include <atomic>
#include <cstring>
#include <new>

namespace {

std::atomic<std::int64_t> countdown{0};  // to the one that fails; 0 or less: none

std::atomic<bool> lasting{false};  // and all after it

std::atomic<const char*> only{nullptr};  // the name of a thread

bool isConcerned() {
  char name[16];
  return only == nullptr || (pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
                             std::strcmp(name, only) == 0);
}

bool failsNow() {
  if (countdown.load(std::memory_order_relaxed) <= 0 || !isConcerned()) return false;
  const std::int64_t left = countdown.fetch_sub(1);
  if (left == 1 && lasting) countdown = 1;
  return left == 1;
}
void* allocate(std::size_t bytes) {
  return failsNow() ? nullptr : ::malloc(bytes == 0 ? 1 : bytes);
}
void* allocate(std::size_t bytes, std::align_val_t alignment) {
  void* memory = nullptr;
  const bool failed =
      failsNow() || ::posix_memalign(&memory, static_cast<std::size_t>(alignment), bytes) != 0;
  return failed ? nullptr : memory;
}
void* orThrow(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace weft::testing {

void failAllocation(std::int64_t n) { countdown = n; }
void failAllocationOf(const char* thread, std::int64_t n) {
  only = thread;
  countdown = n;
}
void failAllocationsFrom(std::int64_t n) {
  lasting = true;
  countdown = n;
}
bool stopFailing() {
  only = nullptr;
  const std::int64_t next = lasting.exchange(false) ? 1 : 0;
  return countdown.exchange(0) <= next;
}

}  // namespace weft::testing

void* operator new(std::size_t n) { return orThrow(allocate(n)); }
void* operator new[](std::size_t n) { return orThrow(allocate(n)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n); }
void* operator new(std::size_t n, std::align_val_t a) { return orThrow(allocate(n, a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return orThrow(allocate(n, a)); }
void operator delete(void* p) noexcept { ::free(p); }
void operator delete[](void* p) noexcept { ::free(p); }
void operator delete(void* p, std::size_t) noexcept { ::free(p); }
void operator delete[](void* p, std::size_t) noexcept { ::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { ::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { ::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { ::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { ::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { ::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { ::free(p); }
