// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "transports/window.h"

namespace weft::wire {

// The 32 bits that come with a write: 4 that say how many remote completions the put has in all, 28
// that name its arrival slot. So the receiver needs no order: the put has arrived when it has
// counted as many. A count of 0: not a put, but how far the sender's invocations are complete; the
// highest count and the last value: it sends nothing more.
struct ImmediateData {
  static constexpr std::uint32_t kMost = 15;
  static constexpr std::uint32_t kValueBits = 28;

  std::uint32_t count = 0;
  std::uint32_t value = 0;
  bool operator==(const ImmediateData&) const = default;

  std::uint32_t packed() const { return count << kValueBits | value; }
  static ImmediateData of(std::uint32_t packed) {
    return {packed >> kValueBits, packed & ((1u << kValueBits) - 1)};
  }
};

// The values of one communicator, from 0: the 28 bits are those of all communicators on a wire.
class ImmediateValues {
 public:
  static constexpr std::uint32_t kFewestBits = 16;

  // As many as there are arrival slots, one that is none, and enough that no two ranks of it are half
  // of them apart in what they have completed: each may be kMaxLanes ahead of whom it sends to.
  explicit ImmediateValues(std::uint32_t arrivals, std::uint32_t ranks)
      : bits_(static_cast<std::uint32_t>(std::bit_width(
            std::max({arrivals, 2 * transport::kMaxLanes * ranks, (1u << kFewestBits) - 1})))) {}

  std::uint32_t bits() const { return bits_; }
  std::uint32_t count() const { return 1u << bits_; }

  ImmediateData bye() const { return {ImmediateData::kMost, mask()}; }
  ImmediateData completed(std::uint64_t epoch) const {
    return {0, static_cast<std::uint32_t>(epoch) & mask()};
  }
  // The epoch that a value stands for, given one that is less than half of them away; 0 if there is
  // none.
  std::uint64_t epochNear(std::uint32_t value, std::uint64_t known) const {
    const std::uint32_t ahead = (value - static_cast<std::uint32_t>(known)) & mask();
    if (ahead <= mask() / 2) return known + ahead;
    const std::uint32_t behind = mask() - ahead + 1;
    return behind < known ? known - behind : 0;
  }

 private:
  std::uint32_t mask() const { return count() - 1; }

  std::uint32_t bits_;
};

}  // namespace weft::wire
