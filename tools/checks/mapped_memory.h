// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <span>

namespace weft::checks {

// Fresh memory of the kernel's, in large pages where it likes; empty if there is none.
class MappedMemory {
 public:
  explicit MappedMemory(std::size_t bytes) : bytes_(bytes) {
    start_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start_ != MAP_FAILED) ::madvise(start_, bytes, MADV_HUGEPAGE);
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory() {
    if (start_ != MAP_FAILED) ::munmap(start_, bytes_);
  }

  std::span<std::uint64_t> words() const {
    if (start_ == MAP_FAILED) return {};
    return {static_cast<std::uint64_t*>(start_), bytes_ / sizeof(std::uint64_t)};
  }

 private:
  std::size_t bytes_;
  void* start_;
};

}  // namespace weft::checks
