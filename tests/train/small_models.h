// SPDX-License-Identifier: Apache-2.0
// Small models of every family, and batches for them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tools/train/batch_source.h"
#include "tools/train/model_shape.h"

namespace weft::train {

inline constexpr int64_t kLength = 24;

inline std::string textOfSquares() {
  std::string text;
  for (int i = 0; i < 200; ++i) text += fmt::format("The square of {} is {}. ", i, i * i);
  return text;
}

inline Options optionsOf(const std::string& name) {
  Options options;
  options.model = name;
  options.length = kLength;
  options.shape = namedShape(name);
  options.shape.layers = 2;
  options.shape.hidden = 64;
  options.shape.heads = 2;
  options.shape.positions = kLength;
  return options;
}

// Every way that blocks and heads are put together.
inline std::vector<ModelShape> allShapes() {
  std::vector<ModelShape> shapes;
  for (const char* name : {"gpt", "neox", "bert"}) shapes.push_back(optionsOf(name).shape);
  shapes.push_back(shapes[0]);
  shapes.back().tied = true;
  shapes.push_back(shapes[1]);
  shapes.back().rotary = Rotary::kZeroFrequency;
  shapes.push_back(shapes[2]);
  shapes.back().preNorm = false;
  for (const char* name : {"gptj", "gptneo", "roberta"}) shapes.push_back(optionsOf(name).shape);
  return shapes;
}

inline Batch batchFor(const ModelShape& shape, uint64_t first, size_t count) {
  static const std::string text = textOfSquares();
  Options options = optionsOf("gpt");
  options.shape.family = shape.family;
  if (fillsMasks(shape.family)) options.shape.vocabulary = kBytesAndMarks;
  return makeBatchSource(options, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}, 64)
      ->batch(0, first, count);
}

}  // namespace weft::train
