// SPDX-License-Identifier: Apache-2.0
// The ranks that share every layer of a model, and what they tell each other of tensors (tensor
// parallelism of Megatron-LM, arXiv 1909.08053). They have the same batch, compute the same between
// layers that are cut, and make the same calls in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include "tools/train/models/tensor_ranks.h"
#include "tools/train/tensor_part.h"

namespace weft::train {

class TensorGroup {
 public:
  TensorGroup() = default;  // of this rank alone
  // Outlives this and all tensors that come of it.
  explicit TensorGroup(TensorRanks& ranks) : ranks_(&ranks) {}

  TensorPart part() const;
  bool isAlone() const { return ranks_ == nullptr || ranks_->size() == 1; }

  // Each collective, of a tensor of equal shape on all ranks.
  // What a layer that is cut by its outputs gives: this rank's share of them. The bias may be undefined. The gradient of x is
  // the sum of those that the ranks have, which goes on while that of the weight is computed.
  at::Tensor outputsOf(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const;
  // What all ranks have alike and use each for its own: the tensor itself, whose gradient is the sum of those that the ranks
  // have.
  at::Tensor shared(const at::Tensor& x) const;
  // After a layer that is cut by its inputs: the sum over the ranks, whose gradient goes to each of them
  // as it is.
  at::Tensor sumOf(const at::Tensor& x) const;
  // The largest of each element; nothing is learned by it.
  at::Tensor largestOf(const at::Tensor& x) const;

 private:
  TensorRanks* ranks_ = nullptr;
};

}  // namespace weft::train
