// SPDX-License-Identifier: Apache-2.0
// GPT-J's parameters. Deviations: 0.02.
#pragma once

#include "tools/train/models/declaration.h"

namespace weft::train {

struct GptjLayers {
  size_t embeddings, head;  // layers
  size_t words;
  std::vector<BlockAt> blocks;
  NormAt norm;
  LinearAt output;

  GptjLayers(const ModelShape& shape, Declaration& declare) {
    const double deviation = 0.02;
    embeddings = declare.layer();
    words = declare.byWords(
        declare.add("embedding", {shape.vocabulary, shape.hidden}, deviation, true));
    for (int64_t i = 0; i < shape.layers; ++i) {
      blocks.emplace_back(shape, i, deviation, deviation, declare, BlockParts{false, false, false});
    }
    head = declare.layer();
    norm = declare.norm("norm", shape.hidden);
    output = declare.byOutputs(declare.linear("output", shape.vocabulary, shape.hidden, deviation));
  }
};

}  // namespace weft::train
