// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/weft.h>

#include <cstddef>

#include "perf/weft-perf/verify.h"

namespace weft::perf {

// Memory for one side of a collective, with a margin on both sides that nobody may write.
class Buffer {
 public:
  // `bytes` of memory at a 2 MiB boundary, and room to move them by `mostUnalign`: plain memory as
  // an application has it, or, if `registeredWith` is a communicator, weftMemAlloc's (page-aligned)
  // and registered there.
  Buffer(std::size_t bytes, std::size_t mostUnalign, weftComm_t registeredWith);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Moves the buffer so many bytes past the boundary.
  void unalign(std::size_t bytes) { data_ = aligned_ + bytes; }
  unsigned char* data() { return data_; }

  // Fills the first `bytes` and the margin around them with a pattern.
  void poison(std::size_t bytes);
  // That `length` bytes at `at` still are as poison() left them.
  CheckResult verifyPoisoned(std::size_t at, std::size_t length) const;
  // That the margin around the first `bytes` is.
  CheckResult verifyMargins(std::size_t bytes) const;

 private:
  void* base_ = nullptr;
  unsigned char* aligned_ = nullptr;
  unsigned char* data_ = nullptr;
  weftComm_t comm_;
  void* registration_ = nullptr;
};

}  // namespace weft::perf
