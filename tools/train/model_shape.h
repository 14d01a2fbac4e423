// SPDX-License-Identifier: Apache-2.0
// Which model: the family, its sizes, and the ones that have a name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::train {

enum class Family { kGpt, kGptj, kGptNeo, kNeox, kBert, kRoberta };

// Whether it learns words that are hidden from it, not the next one.
constexpr bool fillsMasks(Family family) {
  return family == Family::kBert || family == Family::kRoberta;
}

// How positions turn queries and keys in NeoX blocks. Both forms are the same model: the second one
// turns whole heads, most pairs by an angle of zero, and has the rows of its projections in another
// order (models/rotary.h).
enum class Rotary { kPartial, kZeroFrequency };

// The MLP is four times as wide as the model in all of them.
struct ModelShape {
  Family family;
  int64_t layers;
  int64_t hidden;  // a multiple of heads
  int64_t heads;
  int64_t vocabulary;  // rows of the embedding; tokens may use fewer
  int64_t positions;   // the most tokens of a sample; 0 = as many as it has
  bool tied =
      false;  // GPT: the embedding is the output matrix as well. GPT-Neo's and BERT's always are
  bool preNorm = true;  // BERT: LayerNorm before attention and MLP, not after the sum
  Rotary rotary = Rotary::kPartial;
  int64_t window = 256;  // GPT-Neo: tokens that every second block looks back on, its own included
  int64_t classes =
      0;  // of sentences, which BERT's head tells apart; 0 = it is that of pre-training

  bool operator==(const ModelShape&) const = default;
};

// Of bytes: 256, and for BERT [PAD], [CLS], [SEP] and [MASK].
constexpr int64_t kBytes = 256;
constexpr int64_t kBytesAndMarks = kBytes + 4;

constexpr int64_t kBertVocabulary = 30522;  // of the published BERT's word pieces

// The names that namedShape() knows.
std::vector<std::string> modelNames();

// Throws Failure for a name that is not one of them.
ModelShape namedShape(const std::string& name);

}  // namespace weft::train
