// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/recomputed.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <utility>

#include "tools/train/models/autocast.h"

namespace weft::train {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Body = std::function<Tensor(const Tensor&)>;

// What forward was, for libtorch to keep.
struct Again : torch::CustomClassHolder {
  Again(Body c, bool a) : compute(std::move(c)), autocast(a) {}
  Body compute;
  bool autocast;
};

// libtorch runs forward() without a graph.
struct Recomputed : torch::autograd::Function<Recomputed> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Body& compute) {
    context->save_for_backward({x});
    context->saved_data["again"] = c10::IValue::make_capsule(
        c10::make_intrusive<Again>(compute, at::autocast::is_cpu_enabled()));
    return compute(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data.at("again").toCapsule();
    const Again& again = *static_cast<Again*>(capsule.get());
    const Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    Tensor y;
    {
      const at::AutoGradMode withGraph(true);
      const Autocast autocast(again.autocast);
      y = again.compute(x);
    }
    torch::autograd::backward({y}, {gradients[0]});
    return {x.grad(), Tensor()};
  }
};

}  // namespace

Tensor recomputed(const Tensor& x, Body compute) {
  return Recomputed::apply(x, std::move(compute));
}

}  // namespace weft::train
