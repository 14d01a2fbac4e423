// SPDX-License-Identifier: Apache-2.0
// The ranks that share every layer of a model, and what they tell each other of tensors (tensor
// parallelism of Megatron-LM, arXiv 1909.08053). They have the same batch, compute the same between
// layers that are cut, and make the same calls in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include "tools/train/tensor_part.h"
#include "weft/weft.hpp"

namespace weft::train {

class TensorGroup {
 public:
  TensorGroup() = default;  // of this rank alone
  // Outlives this and all tensors that come of it.
  explicit TensorGroup(Communicator& ranks) : ranks_(&ranks) {}

  TensorPart part() const;
  bool isAlone() const { return ranks_ == nullptr || ranks_->size() == 1; }

  // Each collective, of a tensor of equal shape on all ranks.
  // Before a layer that is cut by its outputs: the tensor itself, whose gradient is the sum of those
  // that the ranks have.
  at::Tensor toOutputs(const at::Tensor& x) const;
  // After one that is cut by its inputs: the sum over the ranks, whose gradient goes to each of them
  // as it is.
  at::Tensor sumOf(const at::Tensor& x) const;
  // The largest of each element; nothing is learned by it.
  at::Tensor largestOf(const at::Tensor& x) const;

 private:
  Communicator* ranks_ = nullptr;
};

// Of its elements, fp32, bf16 or fp16.
weftDataType_t typeOf(const at::Tensor& x);

}  // namespace weft::train
