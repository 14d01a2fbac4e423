// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/places.h"

#include <utility>
#include <vector>

#include "tools/train/models/operators.h"
#include "tools/train/models/ranks_in_context.h"

namespace weft::train {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Mode = TensorRanks::Mode;

constexpr int64_t kPlaces = 1;  // the dimension

// Of what each rank has, [ranks, shape]: all along a dimension of the shape.
Tensor inOneRow(const Tensor& byRank, int64_t dimension) {
  return byRank.movedim(0, dimension).flatten(dimension, dimension + 1);
}

Tensor gathered(const Tensor& x, int64_t dimension, TensorRanks& ranks) {
  return inOneRow(ranks.allGathered(x).wait(), dimension);
}

// For reduce-scatter, the other way round.
Tensor byRank(const Tensor& x, const TensorRanks& ranks) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[kPlaces] /= ranks.size();
  shape.insert(shape.begin() + kPlaces, ranks.size());
  return x.reshape(shape).movedim(kPlaces, 0);
}

Tensor ownOf(const Tensor& x, int64_t dimension, const TensorRanks& ranks) {
  const int64_t each = x.size(dimension) / ranks.size();
  return x.narrow(dimension, each * ranks.rank(), each);
}

struct ProductOfPlaces : torch::autograd::Function<ProductOfPlaces> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        TensorRanks* ranks) {
    context->save_for_backward({x, weight});
    keep(*context, ranks);
    return ops::linear(gathered(x, kPlaces, *ranks), weight);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &gradient = gradients[0];
    TensorRanks& ranks = ranksOf(*context);
    auto inputs = ranks.allGathered(x, Mode::kBesideCompute);
    const Tensor ofX = ops::gradientOfInput(gradient, weight, x.scalar_type());
    const Tensor all = inOneRow(inputs.wait(), kPlaces);
    auto sum = ranks.reduceScattered(byRank(ofX, ranks), Mode::kBesideCompute);
    const Tensor ofWeight = ops::gradientOfWeight(gradient, all, weight.scalar_type());
    return {sum.wait(), ofWeight, Tensor()};
  }
};

struct SumOfPlaces : torch::autograd::Function<SumOfPlaces> {
  static Tensor forward(AutogradContext* context, const Tensor& x, TensorRanks* ranks) {
    keep(*context, ranks);
    return ranks->reduceScattered(byRank(x, *ranks)).wait();
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gathered(gradients[0], kPlaces, ranksOf(*context)), Tensor()};
  }
};

struct AllPlaces : torch::autograd::Function<AllPlaces> {
  static Tensor forward(AutogradContext* context, const Tensor& x, TensorRanks* ranks) {
    keep(*context, ranks);
    return gathered(x, kPlaces, *ranks);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {ownOf(gradients[0], kPlaces, ranksOf(*context)), Tensor()};
  }
};

struct OwnPlaces : torch::autograd::Function<OwnPlaces> {
  static Tensor forward(AutogradContext* context, const Tensor& x, int64_t dimension,
                        TensorRanks* ranks) {
    keep(*context, ranks);
    context->saved_data["dimension"] = dimension;
    return ownOf(x, dimension, *ranks);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const int64_t dimension = context->saved_data.at("dimension").toInt();
    return {gathered(gradients[0], dimension, ranksOf(*context)), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor Places::productOf(const Tensor& x, const Tensor& weight) const {
  return ProductOfPlaces::apply(x, weight, ranks_);
}

Tensor Places::sumOf(const Tensor& x) const { return SumOfPlaces::apply(x, ranks_); }

Tensor Places::all(const Tensor& x) const { return areCut() ? AllPlaces::apply(x, ranks_) : x; }

Tensor Places::own(const Tensor& x, int64_t dimension) const {
  return areCut() ? OwnPlaces::apply(x, dimension, ranks_) : x;
}

}  // namespace weft::train
