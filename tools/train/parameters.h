// SPDX-License-Identifier: Apache-2.0
// What a model learns: its parameters, and the layers they are used in. Counting needs no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/train/model_shape.h"
#include "tools/train/tensor_part.h"

namespace weft::train {

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  double initialMean;  // normally distributed at first,
  double initialDeviation;
  bool decay;
  Split split = {};  // of tensor parallelism

  size_t size() const;
};

// A run of parameters that are used together: an embedding, a block, a head.
struct Layer {
  size_t first;
  size_t count;
};

struct Parameters {
  std::vector<Parameter> list;    // in order of first use; matrices are [outputs, inputs]
  std::vector<Layer> layers;      // tile the list
  bool firstIsUsedAgain = false;  // the first layer, whose embedding is tied, with the last one

  size_t size() const;  // elements of all
};

Parameters parametersOf(const ModelShape& shape);
// Those of one part of it: the same ones, most of them smaller.
Parameters parametersOf(const ModelShape& shape, TensorPart part);

}  // namespace weft::train
