// SPDX-License-Identifier: Apache-2.0
// Which row of a head's query and key projections is turned together with which.
//
// Partial rotary turns the first R of a head's D rows, in pairs (i, i + R/2), by frequencies of
// their own; the others stay. A kernel that turns whole heads pairs (i, i + D/2). It does the same
// with frequencies of zero for the rest, if the rows are in this order: the first half of the
// turned ones, as many of the others as fill D/2, the second half of the turned ones, the rest.
// Without reordering it pairs other rows, and is another model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace weft::train {

// NeoX turns a quarter of a head.
constexpr int64_t rotaryRows(int64_t headWidth) { return headWidth / 4; }

// Of one head: row i of the zero-frequency form is row order[i] of the partial one.
inline std::vector<int64_t> zeroFrequencyOrder(int64_t headWidth, int64_t rotary) {
  const int64_t turned = rotary / 2, kept = (headWidth - rotary) / 2;
  std::vector<int64_t> order(static_cast<size_t>(headWidth));
  auto next = order.begin();
  const auto append = [&](int64_t first, int64_t count) {
    std::iota(next, next + count, first);
    next += count;
  };
  append(0, turned);
  append(rotary, kept);
  append(turned, turned);
  append(rotary + kept, kept);
  return order;
}

// Of a fused projection, whose rows are [heads, 3, headWidth]: queries and keys in that order,
// values as they are. For its weight and its bias alike.
inline std::vector<int64_t> zeroFrequencyQkvOrder(int64_t heads, int64_t headWidth) {
  const std::vector<int64_t> inHead = zeroFrequencyOrder(headWidth, rotaryRows(headWidth));
  std::vector<int64_t> order;
  for (int64_t part = 0; part < 3 * heads; ++part) {
    const bool values = part % 3 == 2;
    for (int64_t i = 0; i < headWidth; ++i) {
      order.push_back(part * headWidth + (values ? i : inHead[static_cast<size_t>(i)]));
    }
  }
  return order;
}

// The order that undoes it, for export.
inline std::vector<int64_t> inverseOrder(const std::vector<int64_t>& order) {
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return inverse;
}

}  // namespace weft::train
