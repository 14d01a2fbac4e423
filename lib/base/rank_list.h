// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text.h"

namespace weft {

// "0-2,4" of a sorted list.
inline std::string rankRanges(const std::vector<std::uint32_t>& ranks) {
  std::string line;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    line += text(i == 0 ? "" : ",", ranks[i]);
    if (j > i) line += text("-", ranks[j]);
    i = j + 1;
  }
  return line;
}

// "rank 3" or "ranks 0-2,4".
inline std::string rankList(const std::vector<std::uint32_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rankRanges(ranks);
}

}  // namespace weft
