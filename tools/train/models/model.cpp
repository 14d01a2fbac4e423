// SPDX-License-Identifier: Apache-2.0
#include "tools/train/model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>
#include <vector>

#include "tools/train/models/network.h"

namespace weft::train {
namespace {

class Autocast {
 public:
  explicit Autocast(bool enabled) : enabled_(enabled) {
    if (!enabled_) return;
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
    at::autocast::set_cpu_enabled(true);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast() {
    if (!enabled_) return;
    at::autocast::set_cpu_enabled(false);
    at::autocast::clear_cache();  // the bf16 copies of the weights
  }

 private:
  bool enabled_;
};

class AfterAccumulation : public torch::autograd::FunctionPostHook {
 public:
  explicit AfterAccumulation(std::function<void()> call) : call_(std::move(call)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    call_();
    return outputs;
  }

 private:
  std::function<void()> call_;
};

Tensor viewOf(void* data, Element element, at::IntArrayRef shape) {
  return at::from_blob(data, shape, element == Element::kBfloat16 ? at::kBFloat16 : at::kFloat);
}

std::unique_ptr<Network> makeNetwork(NetworkParts parts) {
  switch (parts.shape.family) {
    case Family::kGptj:
      return makeGptj(std::move(parts));
    case Family::kGptNeo:
      return makeGptNeo(std::move(parts));
    case Family::kNeox:
      return makeNeox(std::move(parts));
    case Family::kBert:
    case Family::kRoberta:
      return makeBert(std::move(parts));
    case Family::kGpt:
      break;
  }
  return makeGpt(std::move(parts));
}

}  // namespace

struct Model::Torch {
  bool autocast;
  std::vector<Parameter> specification;  // of the whole model
  TensorPart part;
  std::vector<Tensor> weights;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;  // hold the hooks
  std::unique_ptr<Network> network;
  Tensor loss;
};

Model::Model(const ModelShape& shape, Compute compute, Element weights, Element gradients,
             std::span<const ParameterMemory> memory, Communicator* tensorGroup)
    : torch_(std::make_unique<Torch>()) {
  torch_->autocast = compute == Compute::kAutocastBfloat16 && weights == Element::kFloat32;
  torch_->specification = parametersOf(shape).list;
  const TensorGroup group = tensorGroup == nullptr ? TensorGroup() : TensorGroup(*tensorGroup);
  torch_->part = group.part();
  for (size_t i = 0; i < torch_->specification.size(); ++i) {
    const auto dimensions = shapeOfPart(torch_->specification[i], torch_->part);
    Tensor weight = viewOf(memory[i].weights, weights, dimensions).requires_grad_(true);
    // Backward adds to a gradient that exists in place, so this view keeps its address for good.
    weight.mutable_grad() = viewOf(memory[i].gradient, gradients, dimensions);
    torch_->weights.push_back(std::move(weight));
  }
  torch_->network = makeNetwork({shape, group, torch_->weights});
}

Model::~Model() = default;

void Model::draw(uint64_t seed, const std::function<void(size_t, const float*)>& take) const {
  const at::NoGradGuard noGradient;
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for (size_t i = 0; i < torch_->weights.size(); ++i) {
    const Parameter& p = torch_->specification[i];
    Tensor drawn = at::full(p.shape, p.initialMean, at::kFloat);
    if (p.initialDeviation != 0) drawn.normal_(p.initialMean, p.initialDeviation, generator);
    drawn = torch_->network->inOrder(i, drawn);
    take(i, drawn.data_ptr<float>());
  }
}

void Model::initialize(uint64_t seed) {
  draw(seed, [this](size_t i, const float* drawn) {
    set(i, partOf(torch_->specification[i], torch_->part, drawn).data());
  });
}

void Model::set(size_t parameter, const float* weights) {
  const at::NoGradGuard noGradient;
  Tensor& target = torch_->weights[parameter];
  target.copy_(viewOf(const_cast<float*>(weights), Element::kFloat32, target.sizes()));
}

void Model::onGradient(std::function<void(size_t parameter)> hook) {
  for (size_t i = 0; i < torch_->weights.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(torch_->weights[i]);
    accumulator->add_post_hook(std::make_unique<AfterAccumulation>([hook, i] { hook(i); }));
    torch_->accumulators.push_back(std::move(accumulator));
  }
}

void Model::onLayer(LayerHooks hooks) { torch_->network->onLayer(std::move(hooks)); }

double Model::forward(const Batch& batch) {
  const Autocast autocast(torch_->autocast);
  torch_->loss = torch_->network->loss(batch);
  return torch_->loss.item<float>();
}

double Model::evaluate(const Batch& batch) {
  const at::NoGradGuard noGradient;
  const Autocast autocast(torch_->autocast);
  return torch_->network->loss(batch).item<float>();
}

void Model::backward(double scale) {
  (torch_->loss * scale).backward();
  torch_->loss.reset();
  torch_->network->backwardEnded();
}

}  // namespace weft::train
