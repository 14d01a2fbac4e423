// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace weft::shm {

// Which parts of [0, bytes) nobody has. Neighbours that are free are one range.
class FreeRanges {
 public:
  explicit FreeRanges(std::size_t bytes);

  // The lowest place with room for `bytes` > 0 at a multiple of `alignment`, a power of two.
  std::optional<std::size_t> take(std::size_t bytes, std::size_t alignment);
  // Takes back what take() gave, the whole or a part of it.
  void give(std::size_t offset, std::size_t bytes);

  std::size_t count() const { return ranges_.size(); }

 private:
  std::map<std::size_t, std::size_t> ranges_;  // offset -> bytes
};

}  // namespace weft::shm
