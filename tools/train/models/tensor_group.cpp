// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/tensor_group.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

namespace weft::train {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor allReduced(const Tensor& x, weftRedOp_t op, weftComm_t ranks) {
  const Tensor in = x.contiguous();
  Tensor out = at::empty_like(in);
  check(weftAllReduce(in.data_ptr(), out.data_ptr(), static_cast<size_t>(in.numel()), typeOf(in),
                      op, ranks, nullptr, nullptr),
        ranks);
  return out;
}

// What a context of libtorch keeps of a communicator.
int64_t numberOf(weftComm_t ranks) { return reinterpret_cast<int64_t>(ranks); }
weftComm_t ranksOf(AutogradContext& context) {
  return reinterpret_cast<weftComm_t>(context.saved_data.at("ranks").toInt());
}

// The two conjugate operators of section 3 of the paper.
struct SumOfGradients : torch::autograd::Function<SumOfGradients> {
  static Tensor forward(AutogradContext* context, const Tensor& x, int64_t ranks) {
    context->saved_data["ranks"] = ranks;
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {allReduced(gradients[0], weftSum, ranksOf(*context)), Tensor()};
  }
};

struct SumOfValues : torch::autograd::Function<SumOfValues> {
  static Tensor forward(AutogradContext*, const Tensor& x, int64_t ranks) {
    return allReduced(x, weftSum, reinterpret_cast<weftComm_t>(ranks));
  }
  static variable_list backward(AutogradContext*, const variable_list& gradients) {
    return {gradients[0], Tensor()};
  }
};

}  // namespace

weftDataType_t typeOf(const Tensor& x) {
  if (x.scalar_type() == at::kHalf) return weftFloat16;
  return x.scalar_type() == at::kBFloat16 ? weftBfloat16 : weftFloat32;
}

TensorPart TensorGroup::part() const {
  return isAlone() ? TensorPart{} : TensorPart{ranks_->rank(), ranks_->size()};
}

Tensor TensorGroup::toOutputs(const Tensor& x) const {
  return isAlone() ? x : SumOfGradients::apply(x, numberOf(*ranks_));
}

Tensor TensorGroup::sumOf(const Tensor& x) const {
  return isAlone() ? x : SumOfValues::apply(x, numberOf(*ranks_));
}

Tensor TensorGroup::largestOf(const Tensor& x) const {
  return isAlone() ? x.detach() : allReduced(x.detach(), weftMax, *ranks_);
}

}  // namespace weft::train
