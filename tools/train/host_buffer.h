// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "weft/weft.hpp"

namespace weft::train {

// `size` floats of weft's memory, zero at first.
class HostBuffer {
 public:
  explicit HostBuffer(size_t size) : size_(size) {
    check(weftMemAlloc(&memory_, size * sizeof(float)));
    std::ranges::fill(values(), 0.0f);
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() { static_cast<void>(weftMemFree(memory_)); }

  std::span<float> values() { return {static_cast<float*>(memory_), size_}; }

 private:
  void* memory_ = nullptr;
  size_t size_;
};

}  // namespace weft::train
