// SPDX-License-Identifier: Apache-2.0
// What a model learns: its parameters, and the layers they are used in. Counting needs no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/train/model_part.h"
#include "tools/train/model_shape.h"

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

// When forward uses the first layer: once more with the last one, if its embedding is tied, and with
// that alone in the last stage of a pipeline.
enum class FirstLayer { kIsFirst, kIsFirstAndLast, kIsLast };

struct Parameters {
  std::vector<Parameter> list;  // in order of first use; matrices are [outputs, inputs]
  std::vector<Layer> layers;    // tile the list
  FirstLayer firstLayer = FirstLayer::kIsFirst;

  // Of a part of a model.
  std::vector<size_t> inWhole;      // which of the whole model's each of the list is
  bool firstIsInTwoStages = false;  // a tied embedding, which the last stage has for the head
  // By run of the stage, the layers that it uses, the first layer first.
  std::vector<std::vector<size_t>> runs;

  size_t size() const;  // elements of all
};

Parameters parametersOf(const ModelShape& shape);
// Those of one part of it: some of the same ones, most of them smaller.
Parameters parametersOf(const ModelShape& shape, const ModelPart& part);
// The layers of a run, of those of the whole model. Every run has a block or more; the first also has the
// embedding, the last one the head.
Range layersOf(const ModelShape& shape, const PipelineStage& stage, int64_t run);
// How many blocks each run has: as the stage says, or else so that the one with the most products has few.
std::vector<int64_t> blocksOfRuns(const ModelShape& shape, const PipelineStage& stage);

}  // namespace weft::train
