// SPDX-License-Identifier: Apache-2.0
#include "tools/train/tied_embedding.h"

#include <algorithm>

namespace weft::train {

void TiedEmbedding::passed(bool isLast) {
  for (size_t i = 0; i < aside_.size(); ++i) aside_[i] += gradient_[i];
  std::fill_n(gradient_, aside_.size(), 0.0f);
  if (!isLast) return;
  stages_.allReduce(aside_.data(), gradient_, aside_.size());
  std::ranges::fill(aside_, 0.0f);
}

}  // namespace weft::train
