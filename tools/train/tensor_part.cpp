// SPDX-License-Identifier: Apache-2.0
#include "tools/train/tensor_part.h"

#include <algorithm>
#include <functional>

#include "tools/train/parameters.h"

namespace weft::train {
namespace {

// Calls body(first in the whole, elements) for each run of a part, in its order.
void visitRuns(const Parameter& whole, TensorPart part,
               const std::function<void(int64_t first, int64_t elements)>& body) {
  const auto all = static_cast<int64_t>(whole.size());
  if (whole.split.along == Split::Along::kNothing) return body(0, all);
  const int64_t rows = whole.shape[0], columns = all / rows;
  if (whole.split.along == Split::Along::kColumns) {
    const auto [first, end] = rangeOf(columns, part);
    for (int64_t row = 0; row < rows; ++row) body(row * columns + first, end - first);
    return;
  }
  const int64_t each = rows / whole.split.matrices;
  const auto [first, end] = rangeOf(each, part);
  for (int64_t matrix = 0; matrix < whole.split.matrices; ++matrix)
    body((matrix * each + first) * columns, (end - first) * columns);
}

}  // namespace

Range rangeOf(int64_t length, TensorPart part) {
  return {length * part.index / part.count, length * (part.index + 1) / part.count};
}

std::vector<int64_t> shapeOfPart(const Parameter& whole, TensorPart part) {
  std::vector<int64_t> shape = whole.shape;
  if (whole.split.along == Split::Along::kNothing) return shape;
  int64_t& cut = whole.split.along == Split::Along::kRows ? shape.front() : shape.back();
  const auto [first, end] = rangeOf(cut / whole.split.matrices, part);
  cut = (end - first) * whole.split.matrices;
  return shape;
}

std::vector<float> partOf(const Parameter& whole, TensorPart part, const float* values) {
  std::vector<float> own;
  visitRuns(whole, part, [&](int64_t first, int64_t elements) {
    own.insert(own.end(), values + first, values + first + elements);
  });
  return own;
}

std::vector<float> joined(const Parameter& whole, std::span<const std::vector<float>> parts) {
  std::vector<float> all(whole.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    auto from = parts[i].begin();
    const TensorPart part{static_cast<int64_t>(i), static_cast<int64_t>(parts.size())};
    visitRuns(whole, part, [&](int64_t first, int64_t elements) {
      std::copy_n(from, elements, all.begin() + first);
      from += elements;
    });
  }
  return all;
}

}  // namespace weft::train
