// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/recomputed.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <optional>
#include <utility>
#include <vector>

#include "tools/train/models/autocast.h"

namespace weft::train {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Body = std::function<Tensor(const Tensor&)>;

// A tensor that is in a file until it is wanted, or not any more.
class Away {
 public:
  Away(std::shared_ptr<OffloadFile> file, const Tensor& x)
      : file_(std::move(file)), sizes_(x.sizes().vec()), options_(x.options()) {
    const auto kept = std::make_shared<Tensor>(x.detach().contiguous());
    id_ = file_->put({kept, static_cast<const std::byte*>(kept->data_ptr())}, kept->nbytes());
  }
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;
  ~Away() {
    if (!isTaken_) file_->drop(id_);
  }

  Tensor take() {
    isTaken_ = true;
    const OffloadFile::Bytes bytes = file_->take(id_);
    return at::from_blob(
        const_cast<std::byte*>(bytes.get()), sizes_, [bytes](void*) {}, options_);
  }

 private:
  std::shared_ptr<OffloadFile> file_;
  std::vector<int64_t> sizes_;
  at::TensorOptions options_;
  OffloadFile::Id id_ = 0;
  bool isTaken_ = false;
};

// What forward was, for libtorch to keep.
struct Again : torch::CustomClassHolder {
  Again(Body c, bool a) : compute(std::move(c)), autocast(a) {}
  Body compute;
  bool autocast;
  std::optional<Away> away = {};  // what it was of, where libtorch does not keep that
};

// libtorch runs forward() without a graph.
struct Recomputed : torch::autograd::Function<Recomputed> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Body& compute,
                        const std::shared_ptr<OffloadFile>& file) {
    auto again = c10::make_intrusive<Again>(compute, at::autocast::is_cpu_enabled());
    Tensor y = compute(x);
    if (file)
      again->away.emplace(file, x);
    else
      context->save_for_backward({x});
    context->saved_data["again"] = c10::IValue::make_capsule(std::move(again));
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data.at("again").toCapsule();
    Again& again = *static_cast<Again*>(capsule.get());
    const Tensor kept = again.away ? again.away->take() : context->get_saved_variables()[0];
    const Tensor x = kept.detach().requires_grad_(true);
    Tensor y;
    {
      const at::AutoGradMode withGraph(true);
      const Autocast autocast(again.autocast);
      y = again.compute(x);
    }
    torch::autograd::backward({y}, {gradients[0]});
    return {x.grad(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor recomputed(const Tensor& x, Body compute, const std::shared_ptr<OffloadFile>& file) {
  return Recomputed::apply(x, std::move(compute), file);
}

}  // namespace weft::train
