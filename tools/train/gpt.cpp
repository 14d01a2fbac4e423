// SPDX-License-Identifier: Apache-2.0
#include "tools/train/gpt.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <limits>
#include <utility>

namespace weft::train {
namespace {

using at::Tensor;

// The order of gptParameters().
enum BlockParameter : size_t {
  kNorm1Gain,
  kNorm1Bias,
  kQkvWeight,
  kQkvBias,
  kAttentionWeight,
  kAttentionBias,
  kNorm2Gain,
  kNorm2Bias,
  kExpandWeight,
  kExpandBias,
  kContractWeight,
  kContractBias,
  kBlockParameters
};
constexpr size_t kEmbedding = 0;
constexpr size_t kPositions = 1;
constexpr size_t kFirstBlock = 2;
// After the blocks: the final gain, bias and the output matrix.

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

}  // namespace

struct Gpt::Torch {
  GptShape shape;
  bool bf16;
  std::vector<Parameter> specification;
  std::vector<Tensor> parameters;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;  // hold the hooks
  Tensor future;  // [length, length], true where attention must not look
  Tensor loss;

  const Tensor& of(int64_t layer, BlockParameter which) const {
    return parameters[kFirstBlock + static_cast<size_t>(layer) * kBlockParameters + which];
  }
  const Tensor& fromEnd(size_t which) const { return parameters[parameters.size() - which]; }

  Tensor normalized(const Tensor& x, const Tensor& gain, const Tensor& bias) const {
    return at::layer_norm(x, {shape.hidden}, gain, bias);
  }

  Tensor attention(const Tensor& x, int64_t layer) const {
    const int64_t batch = x.size(0), width = shape.hidden / shape.heads;
    const Tensor qkv = at::linear(x, of(layer, kQkvWeight), of(layer, kQkvBias))
                           .view({batch, shape.length, 3, shape.heads, width})
                           .permute({2, 0, 3, 1, 4});  // [3, batch, heads, length, width]
    const Tensor query = qkv[0] * (1.0 / std::sqrt(static_cast<double>(width)));
    const Tensor scores = at::matmul(query, qkv[1].transpose(-2, -1))
                              .masked_fill_(future, -std::numeric_limits<double>::infinity());
    const Tensor mixed =
        at::matmul(at::softmax(scores, -1), qkv[2]).transpose(1, 2).reshape(x.sizes());
    return at::linear(mixed, of(layer, kAttentionWeight), of(layer, kAttentionBias));
  }

  Tensor mlp(const Tensor& x, int64_t layer) const {
    const Tensor wide =
        at::gelu(at::linear(x, of(layer, kExpandWeight), of(layer, kExpandBias)), "tanh");
    return at::linear(wide, of(layer, kContractWeight), of(layer, kContractBias));
  }

  // tokens: [batch, length] -> [batch, length, vocabulary].
  Tensor logits(const Tensor& tokens) const {
    Tensor x = at::embedding(parameters[kEmbedding], tokens) + parameters[kPositions];
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
      x = x + attention(normalized(x, of(layer, kNorm1Gain), of(layer, kNorm1Bias)), layer);
      x = x + mlp(normalized(x, of(layer, kNorm2Gain), of(layer, kNorm2Bias)), layer);
    }
    return at::linear(normalized(x, fromEnd(3), fromEnd(2)), fromEnd(1));
  }
};

Gpt::Gpt(const GptShape& shape, bool bf16, const FlatLayout& layout, std::span<float> weights,
         std::span<float> gradients)
    : torch_(std::make_unique<Torch>()) {
  torch_->shape = shape;
  torch_->bf16 = bf16;
  torch_->specification = gptParameters(shape);
  torch_->future = at::ones({shape.length, shape.length}, at::kBool).triu(1);
  for (size_t i = 0; i < torch_->specification.size(); ++i) {
    const size_t offset = layout.slot(i).offset;
    const auto& dimensions = torch_->specification[i].shape;
    Tensor weight = at::from_blob(&weights[offset], dimensions).requires_grad_(true);
    // Backward adds to a gradient that exists in place, so this view keeps its address for good.
    weight.mutable_grad() = at::from_blob(&gradients[offset], dimensions);
    torch_->parameters.push_back(std::move(weight));
  }
}

Gpt::~Gpt() = default;

void Gpt::initialize(uint64_t seed) {
  const at::NoGradGuard noGradient;
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for (size_t i = 0; i < torch_->parameters.size(); ++i) {
    const auto& [name, shape, mean, deviation, decay] = torch_->specification[i];
    if (deviation == 0) {
      torch_->parameters[i].fill_(mean);
    } else {
      torch_->parameters[i].normal_(mean, deviation, generator);
    }
  }
}

void Gpt::onGradient(std::function<void(size_t parameter)> hook) {
  for (size_t i = 0; i < torch_->parameters.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(torch_->parameters[i]);
    accumulator->add_post_hook(std::make_unique<AfterAccumulation>([hook, i] { hook(i); }));
    torch_->accumulators.push_back(std::move(accumulator));
  }
}

double Gpt::forward(std::span<const std::span<const uint8_t>> samples) {
  const int64_t batch = static_cast<int64_t>(samples.size()), length = torch_->shape.length;
  const Tensor inputs = at::empty({batch, length}, at::kLong);
  const Tensor targets = at::empty({batch, length}, at::kLong);
  int64_t* input = inputs.data_ptr<int64_t>();
  int64_t* target = targets.data_ptr<int64_t>();
  for (const std::span<const uint8_t> sample : samples) {
    input = std::copy(sample.begin(), sample.end() - 1, input);
    target = std::copy(sample.begin() + 1, sample.end(), target);
  }
  const Autocast autocast(torch_->bf16);
  const Tensor logits = torch_->logits(inputs).view({batch * length, kVocabulary}).to(at::kFloat);
  torch_->loss = at::cross_entropy_loss(logits, targets.view({batch * length}));
  return torch_->loss.item<float>();
}

void Gpt::backward(double scale) {
  (torch_->loss * scale).backward();
  torch_->loss.reset();
}

}  // namespace weft::train
