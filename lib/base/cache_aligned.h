// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace weft::inline base {

// What two threads write all the time lies this far apart, or each would take the other's cache
// line ("false sharing"): two lines of 64 bytes, for Intel's processors prefetch lines in pairs.
inline constexpr std::size_t kCacheAligned = 128;

// Gives whole lines, on a small array as well: malloc would put those of ranks that are threads of
// one process side by side.
template <class T>
struct CacheAlignedAllocator {
  using value_type = T;

  CacheAlignedAllocator() = default;
  template <class U>
  explicit CacheAlignedAllocator(const CacheAlignedAllocator<U>&) {}

  T* allocate(std::size_t count) {
    const std::size_t lines = (count * sizeof(T) + kCacheAligned - 1) / kCacheAligned;
    return static_cast<T*>(::operator new(lines* kCacheAligned, std::align_val_t(kCacheAligned)));
  }
  void deallocate(T* memory, std::size_t) {
    ::operator delete(memory, std::align_val_t(kCacheAligned));
  }
  template <class U>
  bool operator==(const CacheAlignedAllocator<U>&) const {
    return true;
  }
};

template <class T>
using CacheAlignedVector = std::vector<T, CacheAlignedAllocator<T>>;

}  // namespace weft::inline base
