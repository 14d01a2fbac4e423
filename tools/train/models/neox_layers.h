// SPDX-License-Identifier: Apache-2.0
// GPT-NeoX's and Pythia's parameters. Deviations: sqrt(2 / 5d), and 2 / (layers sqrt d) into the
// residual stream.
#pragma once

#include <cmath>

#include "tools/train/models/declaration.h"

namespace weft::train {

struct NeoxLayers {
  size_t embeddings, head;  // layers
  size_t words;
  std::vector<BlockAt> blocks;
  NormAt norm;
  size_t output;

  NeoxLayers(const ModelShape& shape, Declaration& declare) {
    const auto width = static_cast<double>(shape.hidden),
               layers = static_cast<double>(shape.layers);
    const double deviation = std::sqrt(0.4 / width), residual = 2.0 / (layers * std::sqrt(width));
    embeddings = declare.layer();
    words = declare.byWords(
        declare.add("embedding", {shape.vocabulary, shape.hidden}, deviation, true));
    for (int64_t i = 0; i < shape.layers; ++i) {
      blocks.emplace_back(shape, i, deviation, residual, declare);
    }
    head = declare.layer();
    norm = declare.norm("norm", shape.hidden);
    output =
        declare.byWords(declare.add("output", {shape.vocabulary, shape.hidden}, deviation, true));
  }
};

}  // namespace weft::train
