// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace weft::plan {

// Whether calls of a kind ask if all their buffers are shared (Plan::opening), which takes a round
// and is in vain where one is not. The first calls ask, and what they find out decides: after some
// in a row that asked in vain, few of the later ones do.
//
// All ranks hold the same of it, without a word more: each learns of every answer, and they make
// the same calls in the same order.
class Asking {
 public:
  static constexpr std::uint8_t kInVain = 8;  // in a row
  static constexpr std::uint8_t kSeldom = 64;

  // Does the next call ask?
  bool isDue() {
    if (inVain_ < kInVain) return true;
    calls_ = static_cast<std::uint8_t>((calls_ + 1) % kSeldom);
    return calls_ == 0;
  }
  // What one that asked found out.
  void learn(bool shared) {
    if (shared)
      inVain_ = 0;
    else if (inVain_ < kInVain)
      ++inVain_;
  }

 private:
  std::uint8_t inVain_ = 0;  // up to kInVain
  std::uint8_t calls_ = 0;   // since the last one that asked
};

}  // namespace weft::plan
