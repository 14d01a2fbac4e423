// SPDX-License-Identifier: Apache-2.0
// How tensor parallelism cuts parameters (Megatron-LM, arXiv 1909.08053): matrices by their outputs
// or by their inputs, embeddings by words; norms and the biases of sums are whole on every rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::train {

struct Parameter;

// One rank's part of each layer, of so many.
struct TensorPart {
  int64_t index = 0, count = 1;
};

// Along which dimension a parameter is cut. Rows that are several matrices one below the other, such
// as fused queries, keys and values, are cut each.
struct Split {
  enum class Along { kNothing, kRows, kColumns };
  Along along = Along::kNothing;
  int64_t matrices = 1;

  bool operator==(const Split&) const = default;
};

// [first, end) of `length` in equal parts, or as equal as they come.
struct Range {
  int64_t first, end;
};
Range rangeOf(int64_t length, TensorPart part);

std::vector<int64_t> shapeOfPart(const Parameter& whole, TensorPart part);
// What a part has of a whole parameter, and a whole one of its parts in their order.
std::vector<float> partOf(const Parameter& whole, TensorPart part, const float* values);
std::vector<float> joined(const Parameter& whole, std::span<const std::vector<float>> parts);

}  // namespace weft::train
