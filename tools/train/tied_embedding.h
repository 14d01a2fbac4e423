// SPDX-License-Identifier: Apache-2.0
// An embedding that the first stage of a pipeline looks words up in, and the last one predicts them
// with. Both have a copy, whose gradient is the sum of both stages' (section 3.1 of Megatron-LM, arXiv
// 2104.04473). The last stage is done with a micro-batch long before the first, so that gradients are
// set aside and summed once a step.
#pragma once

#include <cstddef>
#include <vector>

#include "weft/weft.hpp"

namespace weft::train {

class TiedEmbedding {
 public:
  // Both stages; and this one's gradient, which the shard takes. All outlives this.
  TiedEmbedding(Communicator& stages, void* gradient, size_t elements)
      : stages_(stages), gradient_(static_cast<float*>(gradient)), aside_(elements) {}

  // After each backward pass: leaves zeros; after the last one of a step, collectively, the sum.
  void passed(bool isLast);

 private:
  Communicator& stages_;
  float* gradient_;
  std::vector<float> aside_;
};

}  // namespace weft::train
