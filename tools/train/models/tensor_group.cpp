// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/tensor_group.h"

#include "tools/train/models/operators.h"
#include "tools/train/models/ranks_in_context.h"

namespace weft::train {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct SharedOutputs : torch::autograd::Function<SharedOutputs> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const c10::optional<Tensor>& bias, TensorRanks* ranks) {
    const Tensor in = ops::asFactor(x);
    context->save_for_backward({in, weight});
    keep(*context, ranks);
    context->saved_data["type"] = x.scalar_type();
    context->saved_data["bias"] = bias.has_value();
    return ops::linear(in, weight, bias.value_or(Tensor()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &gradient = gradients[0];
    const Tensor ofX =
        ops::gradientOfInput(gradient, weight, context->saved_data.at("type").toScalarType());
    auto sum = ranksOf(*context).allReduced(ofX, weftSum, TensorRanks::Mode::kBesideCompute);
    const Tensor ofWeight = ops::gradientOfWeight(gradient, x, weight.scalar_type());
    const bool hasBias = context->saved_data.at("bias").toBool();
    const Tensor ofBias = hasBias ? ops::gradientOfBias(gradient, weight.scalar_type()) : Tensor();
    return {sum.wait(), ofWeight, ofBias, Tensor()};
  }
};

// The two conjugate operators of section 3 of the paper.
struct SumOfGradients : torch::autograd::Function<SumOfGradients> {
  static Tensor forward(AutogradContext* context, const Tensor& x, TensorRanks* ranks) {
    keep(*context, ranks);
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {ranksOf(*context).allReduced(gradients[0], weftSum).wait(), Tensor()};
  }
};

struct SumOfValues : torch::autograd::Function<SumOfValues> {
  static Tensor forward(AutogradContext*, const Tensor& x, TensorRanks* ranks) {
    return ranks->allReduced(x, weftSum).wait();
  }
  static variable_list backward(AutogradContext*, const variable_list& gradients) {
    return {gradients[0], Tensor()};
  }
};

}  // namespace

TensorPart TensorGroup::part() const {
  return isAlone() ? TensorPart{} : TensorPart{ranks_->rank(), ranks_->size()};
}

Tensor TensorGroup::outputsOf(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
  if (isAlone()) return ops::linear(x, weight, bias);
  const auto given = bias.defined() ? c10::make_optional(bias) : c10::nullopt;
  return SharedOutputs::apply(x, weight, given, ranks_);
}

Tensor TensorGroup::shared(const Tensor& x) const {
  return isAlone() ? x : SumOfGradients::apply(x, ranks_);
}

Tensor TensorGroup::sumOf(const Tensor& x) const {
  return isAlone() ? x : SumOfValues::apply(x, ranks_);
}

Tensor TensorGroup::largestOf(const Tensor& x) const {
  return isAlone() ? x.detach() : ranks_->allReduced(x.detach(), weftMax).wait();
}

}  // namespace weft::train
