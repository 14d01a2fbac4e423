// SPDX-License-Identifier: Apache-2.0
// GPT-Neo's parameters, whose embedding is the output matrix. Deviations: 0.02.
#pragma once

#include "tools/train/models/declaration.h"

namespace weft::train {

struct GptNeoLayers {
  size_t embeddings, head;  // layers
  size_t words, positions;
  std::vector<BlockAt> blocks;
  NormAt norm;

  GptNeoLayers(const ModelShape& shape, Declaration& declare) {
    const double deviation = 0.02;
    embeddings = declare.layer();
    words = declare.byWords(
        declare.add("embedding", {shape.vocabulary, shape.hidden}, deviation, true));
    positions = declare.add("positions", {shape.positions, shape.hidden}, deviation, false);
    for (int64_t i = 0; i < shape.layers; ++i) {
      blocks.emplace_back(shape, i, deviation, deviation, declare, BlockParts{.qkvBias = false});
    }
    head = declare.layer();
    declare.tieTheFirstLayer();
    norm = declare.norm("norm", shape.hidden);
  }
};

}  // namespace weft::train
