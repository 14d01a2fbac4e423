// SPDX-License-Identifier: Apache-2.0
// What a model takes at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::train {

struct Batch {
  static constexpr int64_t kNoTarget = -100;  // nothing is to be predicted here

  uint64_t step = 0, first = 0;  // of the training, and of the step's samples: which ones these are
  size_t samples = 0;
  size_t length = 0;             // tokens in a sample
  std::vector<int64_t> tokens;   // [samples, length]
  std::vector<int64_t> targets;  // [samples, length], tokens or kNoTarget

  // BERT's alone. A sample is [CLS] first [SEP] second [SEP], and padding up to `length`.
  std::vector<int64_t> segments;  // [samples, length]: 0 in the first sentences, 1 in the second
  std::vector<int64_t> used;      // [samples]: tokens before the padding
  std::vector<int64_t> labels;  // [samples]: 0 = the second follows the first, 1 = it is random; or
                                // of a classification the class, or kNoTarget
};

}  // namespace weft::train
