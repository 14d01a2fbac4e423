// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "sim/fifo.h"
#include "sim/time.h"

namespace weft::sim {

// A message that has come and that the core has not seen to yet. Of two words: a rank that is busy sending to
// all others first has one of each of them.
class Came {
 public:
  Came(Time at, std::uint64_t segment, std::uint32_t target, bool byMemory)
      : at_(at), what_(segment << 32 | std::uint64_t{target} << 1 | (byMemory ? 1 : 0)) {}

  Time at() const { return at_; }
  std::uint64_t segment() const { return what_ >> 32; }
  std::uint32_t target() const { return static_cast<std::uint32_t>(what_) >> 1; }
  bool byMemory() const { return (what_ & 1) != 0; }
  auto operator<=>(const Came&) const = default;

 private:
  Time at_;
  std::uint64_t what_;
};

// Those of a rank. They are seen to in the order in which they came, and of those of one time in that of
// the plan.
class Inbox {
 public:
  bool empty() const { return came_.empty(); }
  void push(const Came& message) { came_.push(message); }  // none comes before the last one
  const Came& first() {
    std::size_t end = sorted_;
    while (end < came_.size() &&
           came_.begin()[static_cast<std::ptrdiff_t>(end)].at() == came_.front().at())
      ++end;
    if (end != sorted_) std::sort(came_.begin(), came_.begin() + static_cast<std::ptrdiff_t>(end));
    sorted_ = end;
    return came_.front();
  }
  void pop() {
    came_.pop();
    if (sorted_ != 0) --sorted_;
  }

 private:
  Fifo<Came> came_;
  std::size_t sorted_ = 0;  // of the first ones, all of one time
};

}  // namespace weft::sim
