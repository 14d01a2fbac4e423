// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "net/bytes.h"

namespace weft::control {

// Ranks, as ascending ranges.
class RankSet {
 public:
  struct Range {
    std::uint32_t first = 0, last = 0;
    bool operator==(const Range&) const = default;
  };

  RankSet() = default;
  // Ascending, and apart.
  explicit RankSet(std::vector<Range> ranges) : ranges_(std::move(ranges)) {}

  // All larger than those that are in it.
  void add(Range range);
  void add(std::uint32_t rank) { add({rank, rank}); }
  bool empty() const { return ranges_.empty(); }
  std::size_t size() const;
  const std::vector<Range>& ranges() const { return ranges_; }
  template <class Visit>
  void forEach(Visit visit) const {
    for (const Range& range : ranges_)
      for (std::uint32_t r = range.first; r <= range.last; ++r) visit(r);
  }
  // The first of which that holds.
  template <class Is>
  std::optional<std::uint32_t> findIf(const Is& is) const {
    for (const Range& range : ranges_)
      for (std::uint32_t r = range.first; r <= range.last; ++r)
        if (is(r)) return r;
    return std::nullopt;
  }
  bool operator==(const RankSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

// Some 2 to 4 bytes a range or a bit a rank from the first to the last, whichever is less.
void encode(const RankSet& set, net::ByteWriter* to);
// All are < `ranks`. As from ByteReader: false if they are not, or if not all is there.
bool decode(net::ByteReader* from, std::size_t ranks, RankSet* set);

}  // namespace weft::control
