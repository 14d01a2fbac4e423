// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/free_ranges.h"

#include <iterator>

namespace weft::shm {

FreeRanges::FreeRanges(std::size_t bytes) {
  if (bytes != 0) ranges_[0] = bytes;
}

std::optional<std::size_t> FreeRanges::take(std::size_t bytes, std::size_t alignment) {
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
    const auto [offset, room] = *range;
    const std::size_t gap = -offset & (alignment - 1);
    if (gap >= room || bytes > room - gap) continue;
    ranges_.erase(range);
    if (gap != 0) ranges_[offset] = gap;
    if (room - gap != bytes) ranges_[offset + gap + bytes] = room - gap - bytes;
    return offset + gap;
  }
  return {};
}

void FreeRanges::give(std::size_t offset, std::size_t bytes) {
  const auto next = ranges_.lower_bound(offset);
  const bool touchesNext = next != ranges_.end() && offset + bytes == next->first;
  if (touchesNext) bytes += next->second;
  const auto after = touchesNext ? ranges_.erase(next) : next;
  if (after != ranges_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  ranges_.emplace_hint(after, offset, bytes);
}

}  // namespace weft::shm
