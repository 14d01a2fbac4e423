// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace weft::sim {

// Who makes a call together: `size` ranks, each `stride` after the one before. All ranks of the
// network are in such a group, and number its members from 0.
struct Groups {
  std::uint32_t size = 0;  // 0: one group of all
  std::uint32_t stride = 1;

  std::uint32_t positionOf(std::uint32_t rank) const {
    return size == 0 ? rank : rank / stride % size;
  }
  // A member of this rank's group.
  std::uint32_t rankOf(std::uint32_t rank, std::uint32_t member) const {
    return size == 0 ? member : rank - positionOf(rank) * stride + member * stride;
  }
  friend bool operator==(const Groups&, const Groups&) = default;
};

}  // namespace weft::sim
