// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"

namespace weft::shard {

// Zeroed memory of a shard. Shared memory can be reached by the other ranks of this host, as that
// of weftMemAlloc; where that cannot be had it is private, which works alike and slower.
class ShardMemory {
 public:
  enum class Kind { Shared, Private };

  ShardMemory() = default;
  ShardMemory(ShardMemory&& other) noexcept { swap(other); }
  ShardMemory& operator=(ShardMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~ShardMemory();

  // `what` and `bytes` are named in the error.
  static Status make(Kind kind, std::size_t bytes, const char* what, ShardMemory* out);

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

  // Gives the pages inside of a range back to the system; they read as zero until they are written
  // again. Partial pages are zeroed. No other rank may be using it.
  void drop(std::size_t offset, std::size_t bytes);
  // The same without giving anything back, which is faster if it is written again soon.
  void zero(std::size_t offset, std::size_t bytes);

 private:
  void swap(ShardMemory& other) noexcept;

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool inHeap_ = false;
};

}  // namespace weft::shard
