// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace weft {

// The number that comes with a write: 4 bits that say how many notices the put has in all, 28 bits
// that name the cell. So the receiver needs no order: the put has arrived when it has counted as
// many. No notices in all: not a put, but how far the sender's invocations are complete, or, with
// the most notices and no such cell, that it sends nothing more.
struct Notice {
  static constexpr std::uint32_t kMost = 15;
  static constexpr std::uint32_t kValueBits = 28;
  static constexpr std::uint32_t kValueMask = (1u << kValueBits) - 1;

  std::uint32_t count = 0;
  std::uint32_t value = 0;
  bool operator==(const Notice&) const = default;

  std::uint32_t packed() const { return count << kValueBits | value; }
  static Notice of(std::uint32_t packed) { return {packed >> kValueBits, packed & kValueMask}; }

  static Notice bye() { return {kMost, kValueMask}; }
  static Notice completed(std::uint64_t epoch) {
    return {0, static_cast<std::uint32_t>(epoch) & kValueMask};
  }
  // The epoch that it stands for, given one that is not more than 2^27 away.
  std::uint64_t epochNear(std::uint64_t known) const {
    const std::uint32_t ahead = (value - static_cast<std::uint32_t>(known)) & kValueMask;
    return ahead <= kValueMask / 2 ? known + ahead : known - ((kValueMask - ahead) + 1);
  }
};

}  // namespace weft
