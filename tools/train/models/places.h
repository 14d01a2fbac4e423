// SPDX-License-Identifier: Apache-2.0
// Sequence parallelism (Korthikanti et al., arXiv 2205.05198): between layers that a tensor group has cut, each of its ranks has
// an equal run of the places of every sequence. What was an all-reduce is a reduce-scatter there and an all-gather back.
#pragma once

#include <ATen/core/Tensor.h>

#include "tools/train/models/tensor_ranks.h"

namespace weft::train {

// Places are dimension 1 of [samples, places, width]. All but own() of values are collective.
class Places {
 public:
  Places() = default;  // all on this rank
  // Outlives this and all tensors that come of it.
  explicit Places(TensorRanks& ranks) : ranks_(&ranks) {}

  bool areCut() const { return ranks_ != nullptr; }
  // Of this rank, if all are so many.
  int64_t count(int64_t all) const { return areCut() ? all / ranks_->size() : all; }
  // How many come before this rank's, if it has so many.
  int64_t before(int64_t own) const { return areCut() ? own * ranks_->rank() : 0; }

  // With a matrix [outputs, inputs] that is cut by its outputs: those of all places, of x at this rank's. Backward gathers x
  // once more, so that nobody keeps it whole, while it computes the gradient of x, whose sums then travel while it computes
  // that of the matrix.
  at::Tensor productOf(const at::Tensor& x, const at::Tensor& weight) const;
  // After a layer that is cut by its inputs: the sum over the ranks of what each has of all places, at this rank's.
  at::Tensor sumOf(const at::Tensor& x) const;
  // All places, for layers that every rank computes alike: so their gradients are alike as well.
  at::Tensor all(const at::Tensor& x) const;
  // Of what all ranks have alike, this rank's places, along a dimension. Its gradient is of all places again.
  at::Tensor own(const at::Tensor& x, int64_t dimension) const;

 private:
  TensorRanks* ranks_ = nullptr;
};

}  // namespace weft::train
