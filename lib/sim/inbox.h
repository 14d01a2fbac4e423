// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "sim/fifo.h"
#include "sim/time.h"

namespace weft::sim {

// A message that has come and that the core has not seen to yet.
struct Came {
  Time at = 0;
  std::uint64_t segment = 0;
  std::uint32_t target = 0;
  double ns = 0;  // to receive it
  auto operator<=>(const Came&) const = default;
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
           came_.begin()[static_cast<std::ptrdiff_t>(end)].at == came_.front().at)
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
