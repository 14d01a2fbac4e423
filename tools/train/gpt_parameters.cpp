// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "tools/train/gpt.h"

namespace weft::train {
namespace {

constexpr double kDeviation = 0.02;

void addNorm(std::vector<Parameter>& list, const std::string& name, int64_t width) {
  list.push_back({name + ".gain", {width}, 1.0, 0.0, false});
  list.push_back({name + ".bias", {width}, 0.0, 0.0, false});
}

void addLinear(std::vector<Parameter>& list, const std::string& name, int64_t outputs,
               int64_t inputs, double deviation) {
  list.push_back({name + ".weight", {outputs, inputs}, 0.0, deviation, true});
  list.push_back({name + ".bias", {outputs}, 0.0, 0.0, false});
}

}  // namespace

size_t Parameter::size() const {
  return static_cast<size_t>(
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
}

std::vector<Parameter> gptParameters(const GptShape& shape) {
  const int64_t width = shape.hidden;
  const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers));
  std::vector<Parameter> list;
  list.push_back({"embedding", {kVocabulary, width}, 0.0, kDeviation, false});
  list.push_back({"positions", {shape.length, width}, 0.0, kDeviation, false});
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string block = fmt::format("block{}.", layer);
    addNorm(list, block + "norm1", width);
    addLinear(list, block + "qkv", 3 * width, width, kDeviation);
    addLinear(list, block + "attention", width, width, residual);
    addNorm(list, block + "norm2", width);
    addLinear(list, block + "expand", 4 * width, width, kDeviation);
    addLinear(list, block + "contract", width, 4 * width, residual);
  }
  addNorm(list, "norm", width);
  list.push_back({"output", {kVocabulary, width}, 0.0, kDeviation, true});
  return list;
}

}  // namespace weft::train
