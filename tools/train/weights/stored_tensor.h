// SPDX-License-Identifier: Apache-2.0
// A tensor where it lies in a file of weights: what kind of numbers, and in which order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/train/failure.h"

namespace weft::train {

// Integers and truth values are none of a model's weights, though files hold some: masks,
// positions.
enum class StoredType { kFloat64, kFloat32, kFloat16, kBfloat16, kNoFloat };

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::kNoFloat;
  std::string typeName;  // the file's word for it
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;   // in elements, none negative
  const uint8_t* data = nullptr;  // the first element, of a mapped file; at any address
};

// "[2, 3]"
std::string inWords(const std::vector<int64_t>& shape);

// Strides of a tensor without gaps, the last extent innermost.
std::vector<int64_t> rowMajor(const std::vector<int64_t>& shape);

// A matrix with its rows as columns.
StoredTensor transposed(StoredTensor matrix);

// All elements, the last extent innermost, as float32: rounded to nearest from float64, exact from
// the others. Of floating point alone.
std::vector<float> floatsOf(const StoredTensor& tensor);

// A matrix, or a vector as one of a column, whose row i is row order[i] of this one.
std::vector<float> rowsInOrder(const std::vector<float>& matrix, const std::vector<int64_t>& order);

// A file that is not what it should be. `at` counts its bytes.
[[noreturn]] void refuse(const std::string& file, uint64_t at, const std::string& why);

}  // namespace weft::train
