// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include "transports/setup.h"
#include "transports/shm/children.h"
#include "transports/shm/heap.h"
#include "transports/shm/memory.h"

namespace weft::shm {
namespace {

constexpr std::size_t kRegion = std::size_t{64} << 20;
constexpr std::size_t kWorthKeeping = std::size_t{256} << 20;  // in regions without a block
constexpr const char* kPoolFix = "or free blocks";

}  // namespace

std::byte* Pool::cutFrom(Region& region, std::size_t bytes) {
  const std::optional<std::size_t> offset = region.free.take(bytes, kPage);
  if (!offset) return nullptr;
  region.used += bytes;
  used_ += bytes;
  std::byte* const at = region.base + *offset;
  blocks_[at] = {bytes, &region, Children::forks()};
  return at;
}

Pool::Region* Pool::addRegion(std::size_t bytes) {
  const std::size_t wanted = std::max(kRegion, roundUp(bytes, kHugePage));
  std::byte* const base = heap_.reserve(wanted);
  if (base == nullptr) return nullptr;
  Region& region = regions_[base];
  region.base = base;
  region.bytes = wanted;
  region.free = FreeRanges(wanted);
  kept_ += wanted;
  count_.store(regions_.size(), std::memory_order_release);
  return &region;
}

std::byte* Pool::cut(std::size_t bytes) {
  for (auto& [base, region] : regions_)
    if (region.bytes - region.used >= bytes)
      if (std::byte* const at = cutFrom(region, bytes)) return at;
  Region* const region = addRegion(bytes);
  return region == nullptr ? nullptr : cutFrom(*region, bytes);
}

// Pages come in pieces of 2 MiB, so that they may be huge.
Status Pool::fill(std::byte* at, const Block& block) {
  Region& region = *block.region;
  const std::size_t end =
      roundUp(static_cast<std::size_t>(at - region.base) + block.bytes, kHugePage);
  if (end <= region.there) return {};
  WEFT_TRY(checkAvailable(end - region.there, kPoolFix));
  WEFT_TRY(heap_.populate(region.base + region.there, end - region.there));
  region.there = end;
  return {};
}

Status Pool::take(std::size_t bytes, void** memory) {
  *memory = nullptr;
  if (bytes == 0 || bytes > heap_.memory().size()) return {};
  const std::lock_guard lock(mutex_);
  if (!seenByChildren_.empty()) returnUnseen();
  std::byte* const at = cut(roundUp(bytes, kPage));
  if (at == nullptr) return {};
  const auto block = blocks_.find(at);
  if (fill(at, block->second).ok()) {
    *memory = at;
  } else {
    put(at, block->second);
    blocks_.erase(block);
  }
  return {};
}

void Pool::put(std::byte* at, const Block& block) {
  block.region->free.give(static_cast<std::size_t>(at - block.region->base), block.bytes);
  block.region->used -= block.bytes;
  used_ -= block.bytes;
}

Status Pool::give(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<std::byte*>(memory));
  if (found == blocks_.end())
    return Status::error(Code::InvalidArgument,
                         "ptr did not come from weftPoolAlloc, or is freed already");
  if (Children::live(found->second.forks)) {
    seenByChildren_.insert(blocks_.extract(found));
    return {};
  }
  put(found->first, found->second);
  blocks_.erase(found);
  shrink();
  return {};
}

void Pool::returnUnseen() {
  std::erase_if(seenByChildren_, [&](const auto& entry) {
    const bool isUnseen = !Children::live(entry.second.forks);
    if (isUnseen) put(entry.first, entry.second);
    return isUnseen;
  });
}

void Pool::shrink() {
  if (kept_ <= 2 * used_ + kWorthKeeping) return;
  std::erase_if(regions_, [&](const auto& entry) {
    const Region& region = entry.second;
    if (region.used != 0 || kept_ <= 2 * used_ + kWorthKeeping) return false;
    kept_ -= region.bytes;
    (void)heap_.unreserve(region.base);
    return true;
  });
  count_.store(regions_.size(), std::memory_order_release);
}

void Pool::becomePrivate(int heapDescriptor) const {
  for (const auto& [base, region] : regions_) {
    const void* const mine =
        ::mmap(base, region.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
               heapDescriptor, base - heap_.memory().data());
    if (mine == base) ::madvise(base, region.bytes, MADV_DONTDUMP);
  }
}

}  // namespace weft::shm
