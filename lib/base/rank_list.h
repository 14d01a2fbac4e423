// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text.h"

namespace weft::inline base {

// "0-2,4" of a sorted list, which may name a rank twice.
template <class Rank>
std::string rankRanges(const std::vector<Rank>& ranks) {
  std::string line;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t j = i;
    while (j + 1 < ranks.size() && std::int64_t{ranks[j + 1]} <= std::int64_t{ranks[j]} + 1) ++j;
    line += text(i == 0 ? "" : ",", ranks[i]);
    if (ranks[j] != ranks[i]) line += text("-", ranks[j]);
    i = j + 1;
  }
  return line;
}

// "rank 3" or "ranks 0-2,4".
template <class Rank>
std::string rankList(const std::vector<Rank>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rankRanges(ranks);
}

}  // namespace weft::inline base
