// SPDX-License-Identifier: Apache-2.0
// How a family says which parameters it has: once, in order of use, and it gets back where they
// are.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "tools/train/parameters.h"

namespace weft::train {

// Indices into the list of parameters.
struct NormAt {
  size_t gain, bias;
};
struct LinearAt {
  static constexpr size_t kNone = SIZE_MAX;

  size_t weight, bias;  // the bias may be kNone

  bool hasBias() const { return bias != kNone; }
};

class Declaration {
 public:
  // What is declared from here on belongs to a new layer. Returns its index.
  size_t layer() {
    result_.layers.push_back({result_.list.size(), 0});
    return result_.layers.size() - 1;
  }

  size_t add(const std::string& name, std::vector<int64_t> shape, double deviation, bool decay,
             double mean = 0.0) {
    result_.list.push_back({name, std::move(shape), mean, deviation, decay, {}});
    ++result_.layers.back().count;
    return result_.list.size() - 1;
  }

  NormAt norm(const std::string& name, int64_t width) {
    const size_t gain = add(name + ".gain", {width}, 0.0, false, 1.0);
    return {gain, bias(name, width)};
  }

  LinearAt linear(const std::string& name, int64_t outputs, int64_t inputs, double deviation,
                  bool withBias = true) {
    const size_t weight = add(name + ".weight", {outputs, inputs}, deviation, true);
    return {weight, withBias ? bias(name, outputs) : LinearAt::kNone};
  }

  size_t bias(const std::string& name, int64_t width) {
    return add(name + ".bias", {width}, 0.0, false);
  }

  // How tensor parallelism cuts what has been declared: an embedding by its words, a linear layer by
  // its outputs, of which fused `matrices` have each a share, or by its inputs, whose products are
  // added up before the bias.
  size_t byWords(size_t parameter) {
    result_.list[parameter].split = {Split::Along::kRows, 1};
    return parameter;
  }
  LinearAt byOutputs(const LinearAt& at, int64_t matrices = 1) {
    result_.list[at.weight].split = {Split::Along::kRows, matrices};
    if (at.hasBias()) result_.list[at.bias].split = {Split::Along::kRows, matrices};
    return at;
  }
  LinearAt byInputs(const LinearAt& at) {
    result_.list[at.weight].split = {Split::Along::kColumns, 1};
    return at;
  }

  void tieTheFirstLayer() { result_.firstLayer = FirstLayer::kIsFirstAndLast; }

  Parameters take() { return std::move(result_); }

 private:
  Parameters result_;
};

// What a block of some families lacks.
struct BlockParts {
  bool qkvBias = true, attentionBias = true;
  bool secondNorm = true;  // without, norm2 is norm1
};

// What every block has.
struct BlockAt {
  size_t layer;
  NormAt norm1;
  LinearAt qkv, attention;
  NormAt norm2;
  LinearAt expand, contract;

  // Deviations of matrices, and of the two that add to the residual stream.
  BlockAt(const ModelShape& shape, int64_t index, double inner, double residual,
          Declaration& declare, BlockParts parts = {})
      : layer(declare.layer()) {
    const std::string block = fmt::format("block{}.", index);
    const int64_t width = shape.hidden;
    norm1 = declare.norm(block + "norm1", width);
    // NeoX's rows are [heads, 3, width of a head]; those of all others [3, heads, width of a head].
    qkv = declare.byOutputs(declare.linear(block + "qkv", 3 * width, width, inner, parts.qkvBias),
                            shape.family == Family::kNeox ? 1 : 3);
    attention = declare.byInputs(
        declare.linear(block + "attention", width, width, residual, parts.attentionBias));
    norm2 = parts.secondNorm ? declare.norm(block + "norm2", width) : norm1;
    expand = declare.byOutputs(declare.linear(block + "expand", 4 * width, width, inner));
    contract = declare.byInputs(declare.linear(block + "contract", width, 4 * width, residual));
  }
};

}  // namespace weft::train
