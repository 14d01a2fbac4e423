// SPDX-License-Identifier: Apache-2.0
// BERT's parameters with both heads; the masked-LM head's matrix is the word embedding. A pre-LN
// BERT has the same ones: its residual stream is not normalised at the end. RoBERTa has no head for
// the next sentence, one kind of segment, and places that count from 2: 1 is that of padding. A classification has a pooled head of its own
// in place of those, which leaves the embedding alone.
#pragma once

#include "tools/train/models/declaration.h"

namespace weft::train {

struct BertLayers {
  size_t embeddings, head;  // layers
  size_t words, positions, segments;
  NormAt embeddingNorm;
  std::vector<BlockAt> blocks;
  LinearAt pooler{}, nextSentence{};  // BERT's alone
  LinearAt classifier{};              // after the pooler
  LinearAt transform{};
  NormAt transformNorm{};
  size_t outputBias = 0;

  static constexpr int64_t kFirstPlace = 2, kPlaceOfPadding = 1;  // RoBERTa's

  BertLayers(const ModelShape& shape, Declaration& declare) {
    const double deviation = 0.02;
    const int64_t width = shape.hidden;
    const bool isBert = shape.family == Family::kBert;
    embeddings = declare.layer();
    words = declare.byWords(declare.add("words", {shape.vocabulary, width}, deviation, true));
    positions = declare.add("positions", {shape.positions + (isBert ? 0 : kFirstPlace), width},
                            deviation, true);
    segments = declare.add("segments", {isBert ? 2 : 1, width}, deviation, true);
    embeddingNorm = declare.norm("embedding_norm", width);
    for (int64_t i = 0; i < shape.layers; ++i) {
      blocks.emplace_back(shape, i, deviation, deviation, declare);
    }
    head = declare.layer();
    if (shape.classes > 0) {
      pooler = declare.linear("pooler", width, width, deviation);
      classifier = declare.linear("classifier", shape.classes, width, deviation);
      return;
    }
    declare.tieTheFirstLayer();
    if (isBert) {
      pooler = declare.linear("pooler", width, width, deviation);
      nextSentence = declare.linear("next_sentence", 2, width, deviation);
    }
    transform = declare.linear("transform", width, width, deviation);
    transformNorm = declare.norm("transform_norm", width);
    outputBias = declare.byWords(declare.bias("output", shape.vocabulary));
  }
};

}  // namespace weft::train
