// SPDX-License-Identifier: Apache-2.0
// Arrays at chosen misalignments, between guards that show a store outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace weft::reduce {

class Misaligned {
 public:
  // `bytes` at `shift` bytes past a border of 64.
  Misaligned(size_t bytes, size_t shift)
      : storage_(kGuard + shift + bytes + kGuard + 64, kMark), bytes_(bytes) {
    const auto base = reinterpret_cast<uintptr_t>(storage_.data()) + kGuard;
    begin_ = kGuard + (64 - base % 64) % 64 + shift;
  }

  template <class T>
  Misaligned(const std::vector<T>& elements, size_t shift)
      : Misaligned(elements.size() * sizeof(T), shift) {
    if (bytes_ != 0) std::memcpy(data(), elements.data(), bytes_);
  }

  void* data() { return storage_.data() + begin_; }
  const void* data() const { return storage_.data() + begin_; }

  bool guardsIntact(size_t written) const {
    return isMarked(0, begin_) && isMarked(begin_ + written, storage_.size());
  }

  template <class T>
  T at(size_t index) const {
    T x;
    std::memcpy(&x, storage_.data() + begin_ + index * sizeof(T), sizeof x);
    return x;
  }

 private:
  static constexpr size_t kGuard = 128;
  static constexpr unsigned char kMark = 0xA5;

  // Whether storage_[from, to) is untouched: each byte is like the one before.
  bool isMarked(size_t from, size_t to) const {
    const unsigned char* bytes = storage_.data() + from;
    return from == to || (bytes[0] == kMark && std::memcmp(bytes, bytes + 1, to - from - 1) == 0);
  }

  std::vector<unsigned char> storage_;
  size_t begin_;
  size_t bytes_;
};

}  // namespace weft::reduce
