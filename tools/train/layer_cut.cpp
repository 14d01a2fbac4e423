// SPDX-License-Identifier: Apache-2.0
#include "tools/train/layer_cut.h"

#include <algorithm>
#include <compare>
#include <limits>

namespace weft::train {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Of a cut of the first items.
struct Cost {
  double dearest = kNever, squares = kNever;

  auto operator<=>(const Cost&) const = default;
  Cost with(double part) const { return {std::max(dearest, part), squares + part * part}; }
};

}  // namespace

// Dynamic programming: the best cut of the first `end` items into so many parts is one of the first `begin` into one part
// less, and a last part.
std::vector<int64_t> cheapestCut(std::span<const double> costs, int64_t parts) {
  const size_t items = costs.size(), count = static_cast<size_t>(parts);
  std::vector<double> until(items + 1);
  for (size_t i = 0; i < items; ++i) until[i + 1] = until[i] + costs[i];
  std::vector<std::vector<size_t>> begins(count + 1, std::vector<size_t>(items + 1));
  std::vector<Cost> best(items + 1);
  best[0] = {0, 0};
  for (size_t part = 1; part <= count; ++part) {
    std::vector<Cost> longer(items + 1);
    for (size_t end = part; end <= items; ++end)
      for (size_t begin = part - 1; begin < end; ++begin) {
        const Cost cost = best[begin].with(until[end] - until[begin]);
        if (cost >= longer[end]) continue;
        longer[end] = cost;
        begins[part][end] = begin;
      }
    best = std::move(longer);
  }
  std::vector<int64_t> taken(count);
  for (size_t part = count, end = items; part > 0; end = begins[part--][end])
    taken[part - 1] = static_cast<int64_t>(end - begins[part][end]);
  return taken;
}

}  // namespace weft::train
