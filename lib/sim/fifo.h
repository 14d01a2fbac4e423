// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace weft::sim {

// First in, first out. Unlike a std::deque an empty one has no memory, of which there are millions.
template <class T>
class Fifo {
 public:
  bool empty() const { return first_ == items_.size(); }
  std::size_t size() const { return items_.size() - first_; }
  const T& front() const { return items_[first_]; }
  void push(const T& item) { items_.push_back(item); }
  void pop() {
    constexpr std::size_t kFew = 64;
    ++first_;
    if (first_ != items_.size() && (first_ < kFew || 2 * first_ < items_.size())) return;
    items_.erase(items_.begin(), begin());
    first_ = 0;
  }
  auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
};

}  // namespace weft::sim
