// SPDX-License-Identifier: Apache-2.0
#include "api/blocks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/check.h"
#include "base/invalid.h"

namespace weft::api {

Status measureBlocks(std::span<const std::size_t> counts, const std::size_t* displs,
                     weftDataType_t type, Extent* extent, bool shared) {
  std::vector<std::pair<std::size_t, std::size_t>> blocks;
  std::uint64_t packed = 0;
  *extent = {};
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] == 0) continue;
    const std::uint64_t at = displs ? displs[r] : packed;
    WEFT_TRY(checkCount(counts[r], 1, type));
    WEFT_TRY(checkCount(at + counts[r] < at ? UINT64_MAX : at + counts[r], 1, type));
    blocks.emplace_back(at, at + counts[r]);
    packed += counts[r];
    extent->end = std::max(extent->end, at + counts[r]);
  }
  std::sort(blocks.begin(), blocks.end());
  if (!blocks.empty()) extent->begin = blocks[0].first;
  for (std::size_t i = 1; i < blocks.size() && !shared; ++i)
    if (blocks[i].first < blocks[i - 1].second)
      return invalid("blocks overlap: displs and counts do not fit");
  return {};
}

}  // namespace weft::api
