// SPDX-License-Identifier: Apache-2.0
#include "tools/train/weights/stored_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace weft::train {
namespace {

template <class T>
T loaded(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float fromHalf(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} >> 15 << 31, exponent = bits >> 10 & 31,
                 fraction = bits & 1023;
  if (exponent == 0) {  // zero and the numbers below 2^-14
    const float tiny = std::ldexp(static_cast<float>(fraction), -24);
    return sign == 0 ? tiny : -tiny;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

struct Float64 {
  static constexpr int64_t kBytes = 8;
  static float at(const uint8_t* from) { return static_cast<float>(loaded<double>(from)); }
};
struct Float32 {
  static constexpr int64_t kBytes = 4;
  static float at(const uint8_t* from) { return loaded<float>(from); }
};
struct Float16 {
  static constexpr int64_t kBytes = 2;
  static float at(const uint8_t* from) { return fromHalf(loaded<uint16_t>(from)); }
};
struct Bfloat16 {
  static constexpr int64_t kBytes = 2;
  static float at(const uint8_t* from) {
    return std::bit_cast<float>(uint32_t{loaded<uint16_t>(from)} << 16);
  }
};

// All of the innermost extents, one after another; an index counts the others up like an odometer.
template <class Type>
std::vector<float> convert(const StoredTensor& tensor) {
  if (tensor.shape.empty()) return {Type::at(tensor.data)};
  const int64_t inner = tensor.shape.back(), step = tensor.strides.back() * Type::kBytes;
  int64_t outer = 1;
  for (size_t d = 0; d + 1 < tensor.shape.size(); ++d) outer *= tensor.shape[d];
  std::vector<float> floats;
  floats.reserve(static_cast<size_t>(outer * inner));
  std::vector<int64_t> index(tensor.shape.size() - 1);
  int64_t start = 0;  // element of `index`
  for (int64_t run = 0; run < outer; ++run) {
    const uint8_t* from = tensor.data + start * Type::kBytes;
    for (int64_t i = 0; i < inner; ++i) floats.push_back(Type::at(from + i * step));
    for (size_t d = index.size(); d-- > 0;) {
      start += tensor.strides[d];
      if (++index[d] < tensor.shape[d]) break;
      start -= tensor.strides[d] * std::exchange(index[d], 0);
    }
  }
  return floats;
}

}  // namespace

std::string inWords(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<int64_t> rowMajor(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

StoredTensor transposed(StoredTensor matrix) {
  std::swap(matrix.shape.at(0), matrix.shape.at(1));
  std::swap(matrix.strides.at(0), matrix.strides.at(1));
  return matrix;
}

std::vector<float> floatsOf(const StoredTensor& tensor) {
  switch (tensor.type) {
    case StoredType::kFloat64:
      return convert<Float64>(tensor);
    case StoredType::kFloat16:
      return convert<Float16>(tensor);
    case StoredType::kBfloat16:
      return convert<Bfloat16>(tensor);
    default:
      return convert<Float32>(tensor);
  }
}

std::vector<float> rowsInOrder(const std::vector<float>& matrix,
                               const std::vector<int64_t>& order) {
  const auto columns = static_cast<int64_t>(matrix.size() / order.size());
  std::vector<float> result;
  result.reserve(matrix.size());
  for (const int64_t row : order)
    result.insert(result.end(), matrix.begin() + row * columns,
                  matrix.begin() + (row + 1) * columns);
  return result;
}

void refuse(const std::string& file, uint64_t at, const std::string& why) {
  throw Failure(Exit::kData, fmt::format("{}, byte {}: {}", file, at, why));
}

}  // namespace weft::train
