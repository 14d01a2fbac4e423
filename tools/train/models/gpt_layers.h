// SPDX-License-Identifier: Apache-2.0
// GPT-2's parameters. Deviations: 0.02, and 0.02 / sqrt(2 layers) into the residual stream.
#pragma once

#include <cmath>

#include "tools/train/models/declaration.h"

namespace weft::train {

struct GptLayers {
  size_t embeddings, head;  // layers
  size_t words, positions;
  std::vector<BlockAt> blocks;
  NormAt norm;
  size_t output;  // `words` if tied

  GptLayers(const ModelShape& shape, Declaration& declare) {
    const double deviation = 0.02;
    const double residual = deviation / std::sqrt(2.0 * static_cast<double>(shape.layers));
    embeddings = declare.layer();
    // Untied, the embedding is a table of vectors, which do not decay.
    words = declare.byWords(
        declare.add("embedding", {shape.vocabulary, shape.hidden}, deviation, shape.tied));
    positions = declare.add("positions", {shape.positions, shape.hidden}, deviation, false);
    for (int64_t i = 0; i < shape.layers; ++i) {
      blocks.emplace_back(shape, i, deviation, residual, declare);
    }
    head = declare.layer();
    if (shape.tied) declare.tieTheFirstLayer();
    norm = declare.norm("norm", shape.hidden);
    output = words;
    if (!shape.tied)
      output =
          declare.byWords(declare.add("output", {shape.vocabulary, shape.hidden}, deviation, true));
  }
};

}  // namespace weft::train
