// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/places.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "tools/train/models/tensor_group.h"

namespace weft::train {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kPlaces = 1;  // the dimension

Tensor gathered(const Tensor& x, int64_t dimension, Communicator& ranks) {
  const Tensor in = x.contiguous();
  std::vector<int64_t> shape = in.sizes().vec();
  shape.insert(shape.begin(), ranks.size());
  const Tensor out = at::empty(shape, in.options());
  check(weftAllGather(in.data_ptr(), out.data_ptr(), static_cast<size_t>(in.numel()), typeOf(in),
                      ranks, nullptr, nullptr),
        ranks);
  return out.movedim(0, dimension).flatten(dimension, dimension + 1);
}

Tensor scattered(const Tensor& x, Communicator& ranks) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[kPlaces] /= ranks.size();
  const Tensor out = at::empty(shape, x.options());
  shape.insert(shape.begin() + kPlaces, ranks.size());
  const Tensor in = x.reshape(shape).movedim(kPlaces, 0).contiguous();
  check(weftReduceScatter(in.data_ptr(), out.data_ptr(), static_cast<size_t>(out.numel()),
                          typeOf(in), weftSum, ranks, nullptr, nullptr),
        ranks);
  return out;
}

Tensor ownOf(const Tensor& x, int64_t dimension, const Communicator& ranks) {
  const int64_t each = x.size(dimension) / ranks.size();
  return x.narrow(dimension, each * ranks.rank(), each);
}

// What a context of libtorch keeps of a communicator.
int64_t addressOf(Communicator* ranks) { return reinterpret_cast<int64_t>(ranks); }
Communicator& communicatorAt(int64_t number) { return *reinterpret_cast<Communicator*>(number); }
Communicator& communicatorOf(AutogradContext& context) {
  return communicatorAt(context.saved_data.at("ranks").toInt());
}

struct ProductOfPlaces : torch::autograd::Function<ProductOfPlaces> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        int64_t ranks) {
    context->save_for_backward({x, weight});
    context->saved_data["ranks"] = ranks;
    return at::linear(gathered(x, kPlaces, communicatorAt(ranks)), weight);
  }

  // Under autocast products are of the gradient's type, and what comes of them of the type that x and weights have.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &gradient = gradients[0];
    const auto type = gradient.scalar_type();
    Communicator& ranks = communicatorOf(*context);
    const Tensor ofX = at::matmul(gradient, weight.to(type)).to(x.scalar_type());
    const Tensor inputs = gathered(x, kPlaces, ranks).to(type).flatten(0, 1);
    const Tensor ofWeight = at::matmul(gradient.flatten(0, 1).t(), inputs);
    return {scattered(ofX, ranks), ofWeight.to(weight.scalar_type()), Tensor()};
  }
};

struct SumOfPlaces : torch::autograd::Function<SumOfPlaces> {
  static Tensor forward(AutogradContext* context, const Tensor& x, int64_t ranks) {
    context->saved_data["ranks"] = ranks;
    return scattered(x, communicatorAt(ranks));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gathered(gradients[0], kPlaces, communicatorOf(*context)), Tensor()};
  }
};

struct AllPlaces : torch::autograd::Function<AllPlaces> {
  static Tensor forward(AutogradContext* context, const Tensor& x, int64_t ranks) {
    context->saved_data["ranks"] = ranks;
    return gathered(x, kPlaces, communicatorAt(ranks));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {ownOf(gradients[0], kPlaces, communicatorOf(*context)), Tensor()};
  }
};

struct OwnPlaces : torch::autograd::Function<OwnPlaces> {
  static Tensor forward(AutogradContext* context, const Tensor& x, int64_t dimension,
                        int64_t ranks) {
    context->saved_data["ranks"] = ranks;
    context->saved_data["dimension"] = dimension;
    return ownOf(x, dimension, communicatorAt(ranks));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const int64_t dimension = context->saved_data.at("dimension").toInt();
    return {gathered(gradients[0], dimension, communicatorOf(*context)), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor Places::productOf(const Tensor& x, const Tensor& weight) const {
  return ProductOfPlaces::apply(x, weight, addressOf(ranks_));
}

Tensor Places::sumOf(const Tensor& x) const { return SumOfPlaces::apply(x, addressOf(ranks_)); }

Tensor Places::all(const Tensor& x) const {
  return areCut() ? AllPlaces::apply(x, addressOf(ranks_)) : x;
}

Tensor Places::own(const Tensor& x, int64_t dimension) const {
  return areCut() ? OwnPlaces::apply(x, dimension, addressOf(ranks_)) : x;
}

}  // namespace weft::train
