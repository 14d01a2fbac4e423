// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace weft::wire {

// The 32 bits that come with a write: 4 that say how many remote completions the put has in all, 28
// that name its arrival slot. So the receiver needs no order: the put has arrived when it has
// counted as many. A count of 0: not a put, but how far the sender's invocations are complete; the
// highest count and no such slot: it sends nothing more.
struct ImmediateData {
  static constexpr std::uint32_t kMost = 15;
  static constexpr std::uint32_t kValueBits = 28;
  static constexpr std::uint32_t kValueMask = (1u << kValueBits) - 1;

  std::uint32_t count = 0;
  std::uint32_t value = 0;
  bool operator==(const ImmediateData&) const = default;

  std::uint32_t packed() const { return count << kValueBits | value; }
  static ImmediateData of(std::uint32_t packed) {
    return {packed >> kValueBits, packed & kValueMask};
  }

  static ImmediateData bye() { return {kMost, kValueMask}; }
  static ImmediateData completed(std::uint64_t epoch) {
    return {0, static_cast<std::uint32_t>(epoch) & kValueMask};
  }
  // The epoch that it stands for, given one that is less than 2^27 away; 0 if there is none.
  std::uint64_t epochNear(std::uint64_t known) const {
    const std::uint32_t ahead = (value - static_cast<std::uint32_t>(known)) & kValueMask;
    if (ahead <= kValueMask / 2) return known + ahead;
    const std::uint32_t behind = kValueMask - ahead + 1;
    return behind < known ? known - behind : 0;
  }
};

}  // namespace weft::wire
