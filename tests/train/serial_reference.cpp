// SPDX-License-Identifier: Apache-2.0
#include "tests/train/serial_reference.h"

#include <ATen/Parallel.h>
#include <torch/types.h>  // first, as clip_grad.h needs it

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tests/train/serial_models.h"
#include "tools/train/batch_source.h"
#include "tools/train/corpus.h"
#include "tools/train/learning_rate.h"
#include "tools/train/model.h"

namespace weft::train {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;

// Steps the parameters by their gradients, at a learning rate.
using Step = std::function<void(double rate)>;

// Parameters that decay, and the others.
std::pair<Tensors, Tensors> split(const SerialModel& model, const Departure& departure) {
  std::pair<Tensors, Tensors> groups;
  for (const auto& parameter : model.named_parameters()) {
    const bool decays = departure.decayAll || model.decays(parameter.key(), parameter.value());
    (decays ? groups.first : groups.second).push_back(parameter.value());
  }
  return groups;
}

// torch::optim's `Optimizer`.
template <class Optimizer, class Settings>
Step torchStep(const std::pair<Tensors, Tensors>& groups, const Settings& settings) {
  Settings withoutDecay = settings;
  withoutDecay.weight_decay(0);
  const std::vector<torch::optim::OptimizerParamGroup> list = {
      {groups.first}, {groups.second, std::make_unique<Settings>(withoutDecay)}};
  return [optimizer = std::make_shared<Optimizer>(list, settings)](double rate) {
    for (auto& group : optimizer->param_groups()) group.options().set_lr(rate);
    optimizer->step();
  };
}

// LAMB (You et al., algorithm 2) of one whole parameter, as NVIDIA's FusedLAMB has it: with bias
// correction, and a trust ratio of 1 where nothing decays.
class Lamb {
 public:
  Lamb(const Tensor& weights, double decay, const Options& options, const Departure& departure)
      : weights_(weights),
        m_(torch::zeros_like(weights)),
        v_(torch::zeros_like(weights)),
        beta1_(options.beta1),
        beta2_(options.beta2),
        decay_(decay),
        departure_(departure) {}

  void step(double rate) {
    const torch::NoGradGuard noGradient;
    const Tensor& g = weights_.grad();
    m_ = beta1_ * m_ + (1 - beta1_) * g;
    v_ = beta2_ * v_ + (1 - beta2_) * g * g;
    ++steps_;
    const Tensor update =
        m_ / correction(beta1_) / ((v_ / correction(beta2_)).sqrt() + departure_.epsilon) +
        decay_ * weights_;
    weights_ -= rate * trust(update) * update;
  }

 private:
  double correction(double beta) const {
    return departure_.biasCorrection ? 1 - std::pow(beta, steps_) : 1;
  }

  double trust(const Tensor& update) const {
    const double whole = weights_.norm().item<double>(), change = update.norm().item<double>();
    const bool applies = departure_.trust && decay_ > 0 && whole > 0 && change > 0;
    return applies ? whole / change : 1;
  }

  Tensor weights_, m_, v_;
  double beta1_, beta2_, decay_;
  Departure departure_;
  int steps_ = 0;
};

// LANS (Zheng et al., algorithm 2) of one whole parameter; its norm has epsilon beside it.
class Lans {
 public:
  Lans(const Tensor& weights, double decay, const Options& options, const Departure& departure)
      : weights_(weights),
        m_(torch::zeros_like(weights)),
        v_(torch::zeros_like(weights)),
        beta1_(options.beta1),
        beta2_(options.beta2),
        decay_(decay),
        departure_(departure) {}

  void step(double rate) {
    const torch::NoGradGuard noGradient;
    const Tensor g = departure_.normalized
                         ? weights_.grad() / (weights_.grad().norm() + departure_.epsilon)
                         : weights_.grad();
    m_ = beta1_ * m_ + (1 - beta1_) * g;
    v_ = beta2_ * v_ + (1 - beta2_) * g * g;
    ++steps_;
    const Tensor deviation = (v_ / (1 - std::pow(beta2_, steps_))).sqrt() + departure_.epsilon;
    const double nesterov = departure_.nesterov ? 1 - beta1_ : 0;
    const Tensor change = (1 - nesterov) * scaled(m_ / (1 - std::pow(beta1_, steps_)) / deviation) +
                          nesterov * scaled(g / deviation);
    weights_ -= rate * change;
  }

 private:
  // With the decay, and as long as the weights.
  Tensor scaled(const Tensor& direction) const {
    const Tensor whole = direction + decay_ * weights_;
    const double weights = weights_.norm().item<double>(), change = whole.norm().item<double>();
    return weights > 0 && change > 0 ? whole * (weights / change) : whole;
  }

  Tensor weights_, m_, v_;
  double beta1_, beta2_, decay_;
  Departure departure_;
  int steps_ = 0;
};

template <class Optimizer>
Step wholeStep(const std::pair<Tensors, Tensors>& groups, const Options& o, const Departure& d) {
  std::vector<Optimizer> all;
  for (const Tensor& weights : groups.first) all.emplace_back(weights, o.weightDecay, o, d);
  for (const Tensor& weights : groups.second) all.emplace_back(weights, 0, o, d);
  return [all](double rate) mutable {
    for (Optimizer& each : all) each.step(rate);
  };
}

using Words = std::array<uint32_t, 4>;

// Philox4x32-10, as the paper has it (Salmon et al., SC'11).
Words philox(Words counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

// Of a step's samples, all of which are here.
SerialModel::Dropping droppingOf(const Options& options, uint32_t step) {
  return
      [=, share = options.dropout, seed = options.seed](const Tensor& x, int64_t layer, int place) {
        Tensor kept = torch::empty(x.sizes());
        const int64_t ofSample = x.numel() / x.size(0);
        for (int64_t i = 0; i < x.numel(); ++i) {
          const auto sample = static_cast<uint32_t>(i / ofSample);
          const auto element = static_cast<uint32_t>(i % ofSample);
          const Words words =
              philox({element / 4, static_cast<uint32_t>(4 * layer + place), sample, step},
                     {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
          kept.data_ptr<float>()[i] = words[element % 4] < share * 0x1p32 ? 0 : 1;
        }
        return x * kept / (1 - share);
      };
}

Step makeStep(const SerialModel& model, const Options& o, const Departure& departure) {
  const auto groups = split(model, departure);
  if (o.optimizer == "lamb") return wholeStep<Lamb>(groups, o, departure);
  if (o.optimizer == "lans") return wholeStep<Lans>(groups, o, departure);
  if (o.optimizer == "sgd") {
    return torchStep<torch::optim::SGD>(
        groups, torch::optim::SGDOptions(1).momentum(o.momentum).weight_decay(o.weightDecay));
  }
  return torchStep<torch::optim::AdamW>(groups, torch::optim::AdamWOptions()
                                                    .betas({o.beta1, o.beta2})
                                                    .eps(departure.epsilon)
                                                    .weight_decay(o.weightDecay));
}

// Those that weft-train's model starts from.
void copyInitialWeights(const Options& options, SerialModel& model) {
  const std::vector<Parameter> list = parametersOf(options.shape).list;
  const Tensors parameters = model.parameters();
  TORCH_CHECK(parameters.size() == list.size(), "the models have other parameters");
  Tensors initial, gradients;
  std::vector<ParameterMemory> memory;
  for (const Parameter& parameter : list) {
    initial.push_back(torch::empty(parameter.shape));
    gradients.push_back(torch::empty(parameter.shape));
    memory.push_back({initial.back().data_ptr(), gradients.back().data_ptr()});
  }
  Model(options.shape, Compute::kAsWeights, Element::kFloat32, Element::kFloat32, memory)
      .initialize(options.seed);
  const torch::NoGradGuard noGradient;
  for (size_t i = 0; i < list.size(); ++i) {
    TORCH_CHECK(parameters[i].sizes() == initial[i].sizes(), list[i].name, " has another shape");
    parameters[i].copy_(initial[i]);
  }
}

}  // namespace

Curve serialCurve(const Options& options, const Departure& departure) {
  at::set_num_threads(1);
  const std::vector<uint8_t> text = readCorpus(options.data);
  const auto samples =
      static_cast<size_t>(std::max(options.ranks, 1) * options.batch * options.accumulate);
  const auto batches = makeBatchSource(options, text, samples);
  const auto model = makeSerialModel(options.shape);
  copyInitialWeights(options, *model);
  const Step step = makeStep(*model, options, departure);
  const double largest = options.clip > 0 ? options.clip : std::numeric_limits<double>::infinity();
  Curve curve;
  for (int64_t t = 0; t < options.steps; ++t) {
    model->zero_grad();
    if (options.dropout > 0) model->drops = droppingOf(options, static_cast<uint32_t>(t));
    const Tensor loss = model->loss(batches->batch(static_cast<uint64_t>(t), 0, samples));
    loss.backward();
    curve.losses.push_back(loss.item<double>());
    curve.norms.push_back(torch::nn::utils::clip_grad_norm_(model->parameters(), largest));
    step(learningRate(rateScheduleOf(options), t));
  }
  return curve;
}

}  // namespace weft::train
