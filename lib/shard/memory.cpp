// SPDX-License-Identifier: Apache-2.0
#include "shard/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "transports/shm/heap.h"

namespace weft::shard {

ShardMemory::~ShardMemory() {
  if (data_ == nullptr) return;
  if (!inHeap_) {
    ::munmap(data_, bytes_);
  } else if (!shm::Heap::isParents(data_)) {
    (void)shm::Heap::existing()->release(data_);
  }
}

void ShardMemory::swap(ShardMemory& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(inHeap_, other.inHeap_);
}

Status ShardMemory::make(Kind kind, std::size_t bytes, const char* what, ShardMemory* out) {
  *out = ShardMemory();
  if (bytes == 0) return {};
  ShardMemory made;
  made.bytes_ = bytes;
  void* memory = nullptr;
  if (shm::Heap* const heap = kind == Kind::Shared ? shm::Heap::own() : nullptr)
    WEFT_TRY(heap->allocate(bytes, &memory));
  made.inHeap_ = memory != nullptr;
  if (memory == nullptr) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return Status::error(Code::OutOfMemory, "cannot allocate ", bytes, " bytes for ", what, ": ",
                           std::strerror(errno),
                           "; fix: shard over more ranks, or raise the limit (ulimit -v)");
    ::madvise(memory, bytes, MADV_HUGEPAGE);  // a hint
  }
  made.data_ = static_cast<std::byte*>(memory);
  *out = std::move(made);
  return {};
}

void ShardMemory::zero(std::size_t offset, std::size_t bytes) {
  if (bytes != 0) std::memset(data_ + offset, 0, bytes);
}

void ShardMemory::drop(std::size_t offset, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t from = (offset + page - 1) / page * page;
  const std::size_t to = (offset + bytes) / page * page;
  const int advice = inHeap_ ? MADV_REMOVE : MADV_DONTNEED;
  if (from >= to || ::madvise(data_ + from, to - from, advice) != 0) return zero(offset, bytes);
  zero(offset, from - offset);
  zero(to, offset + bytes - to);
}

}  // namespace weft::shard
