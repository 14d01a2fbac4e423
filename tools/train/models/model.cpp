// SPDX-License-Identifier: Apache-2.0
#include "tools/train/model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "tools/train/models/autocast.h"
#include "tools/train/models/network.h"
#include "tools/train/models/stage_links.h"

namespace weft::train {
namespace {

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

at::ScalarType scalarTypeOf(Element element) {
  if (element == Element::kFloat16) return at::kHalf;
  return element == Element::kBfloat16 ? at::kBFloat16 : at::kFloat;
}

Tensor viewOf(void* data, Element element, at::IntArrayRef shape) {
  return at::from_blob(data, shape, scalarTypeOf(element));
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
  ModelPart part;
  std::optional<TensorRanks> tensorRanks;
  Places places;
  std::vector<size_t> inWhole;                                       // which of them this rank has
  std::vector<Tensor> weights;                                       // its part of those
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;  // hold the hooks
  std::unique_ptr<Network> network;
  StageLinks links;
  // What a run of layers got of a batch, undefined in the first one, and what it has made of it.
  struct InFlight {
    Tensor in, out;
  };
  std::vector<std::deque<InFlight>> inFlight;  // by run of this stage
  double dropoutShare = 0;
  uint64_t dropoutSeed = 0;

  bool isFirst(int64_t own) const { return part.stage.run(own) == 0; }
  bool isLast(int64_t own) const { return part.stage.run(own) + 1 == part.stage.runs(); }
  Tensor received(const Batch& batch, int64_t own, bool learns);
  Tensor made(const Batch& batch, int64_t own, const Tensor& in);
  double told(int64_t own, const Tensor& out);
};

// Under autocast, too, activations between stages are of the type of the weights.
Tensor Model::Torch::received(const Batch& batch, int64_t own, bool learns) {
  if (isFirst(own)) return {};
  const ModelShape& shape = network->shape();
  const auto samples = static_cast<int64_t>(batch.samples),
             length = static_cast<int64_t>(batch.length);
  return links.receive({samples, places.count(length), shape.hidden}, weights[0].scalar_type())
      .requires_grad_(learns);
}

Tensor Model::Torch::made(const Batch& batch, int64_t own, const Tensor& in) {
  network->turnTo(own);
  const Tensor out = network->forward(batch, in);
  return isLast(own) ? out : out.to(weights[0].scalar_type());
}

double Model::Torch::told(int64_t own, const Tensor& out) {
  if (isLast(own)) return out.item<float>();
  links.send(out.detach());
  return 0;
}

Model::Model(const ModelShape& shape, Compute compute, Element weights, Element gradients,
             std::span<const ParameterMemory> memory, const ModelGroups& groups)
    : torch_(std::make_unique<Torch>()) {
  torch_->autocast = compute == Compute::kAutocastBfloat16 && weights == Element::kFloat32;
  torch_->specification = parametersOf(shape).list;
  torch_->part = groups.part;
  torch_->inFlight.resize(static_cast<size_t>(groups.part.stage.virtuals));
  const Parameters own = parametersOf(shape, torch_->part);
  torch_->inWhole = own.inWhole;
  std::vector<Tensor> ofAll(torch_->specification.size());
  for (size_t i = 0; i < own.list.size(); ++i) {
    const std::vector<int64_t>& dimensions = own.list[i].shape;
    Tensor weight = viewOf(memory[i].weights, weights, dimensions).requires_grad_(true);
    // Backward adds to a gradient that exists in place, so this view keeps its address for good.
    weight.mutable_grad() = viewOf(memory[i].gradient, gradients, dimensions);
    ofAll[own.inWhole[i]] = weight;
    torch_->weights.push_back(std::move(weight));
  }
  if (groups.tensor != nullptr) torch_->tensorRanks.emplace(*groups.tensor);
  std::optional<TensorRanks>& ranks = torch_->tensorRanks;
  const TensorGroup group = ranks ? TensorGroup(*ranks) : TensorGroup();
  if (groups.cutsPlaces && !group.isAlone()) torch_->places = Places(*ranks);
  torch_->network =
      makeNetwork({shape, group, torch_->places, torch_->part.stage, std::move(ofAll)});
  torch_->links = StageLinks(groups.before, groups.after);
}

Model::~Model() = default;

void Model::draw(uint64_t seed, const std::function<void(size_t, const float*)>& take) const {
  const at::NoGradGuard noGradient;
  at::Generator generator = at::detail::createCPUGenerator(seed);
  size_t own = 0;
  for (size_t i = 0; i < torch_->specification.size(); ++i) {
    const Parameter& p = torch_->specification[i];
    Tensor drawn = at::full(p.shape, p.initialMean, at::kFloat);
    if (p.initialDeviation != 0) drawn.normal_(p.initialMean, p.initialDeviation, generator);
    if (own == torch_->inWhole.size() || torch_->inWhole[own] != i) continue;
    drawn = torch_->network->inOrder(i, drawn);
    take(own++, drawn.data_ptr<float>());
  }
}

void Model::initialize(uint64_t seed) {
  draw(seed, [this](size_t i, const float* drawn) {
    const Parameter& whole = torch_->specification[torch_->inWhole[i]];
    set(i, partOf(whole, torch_->part.tensor, drawn).data());
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

void Model::dropOut(double share, uint64_t seed) {
  torch_->dropoutShare = share;
  torch_->dropoutSeed = seed;
}

void Model::recomputeBlocks(std::shared_ptr<OffloadFile> file) {
  torch_->network->recomputeBlocks(std::move(file));
}

void Model::onLayer(LayerHooks hooks) { torch_->network->onLayer(std::move(hooks)); }

double Model::forward(const Batch& batch, int64_t own) {
  const Autocast autocast(torch_->autocast);
  torch_->network->dropOut({torch_->dropoutShare, torch_->dropoutSeed, batch.step, batch.first});
  const Tensor in = torch_->received(batch, own, true);
  const Tensor out = torch_->made(batch, own, in);
  torch_->inFlight[static_cast<size_t>(own)].push_back({in, out});
  return torch_->told(own, out);
}

double Model::evaluate(const Batch& batch, int64_t own) {
  const at::NoGradGuard noGradient;
  const Autocast autocast(torch_->autocast);
  torch_->network->dropOut({});
  return torch_->told(own, torch_->made(batch, own, torch_->received(batch, own, false)));
}

std::vector<float> Model::scores(const Batch& batch) {
  const at::NoGradGuard noGradient;
  const Autocast autocast(torch_->autocast);
  torch_->network->dropOut({});
  const Tensor out = torch_->network->scores(batch, torch_->received(batch, 0, false));
  if (!torch_->part.stage.isLast()) {
    torch_->links.send(out.to(torch_->weights[0].scalar_type()));
    return {};
  }
  const Tensor all = out.contiguous();
  return {all.data_ptr<float>(), all.data_ptr<float>() + all.numel()};
}

void Model::backward(double scale, int64_t own) {
  std::deque<Torch::InFlight>& inFlight = torch_->inFlight[static_cast<size_t>(own)];
  const auto [in, out] = std::move(inFlight.front());
  inFlight.pop_front();
  if (torch_->isLast(own))
    (out * scale).backward();
  else
    out.backward(torch_->links.receiveGradient(out));
  torch_->network->backwardEnded();
  if (in.defined()) torch_->links.sendGradient(in.grad());
}

// The last stage has passed the batch on to the first one's next run.
void Model::forget() {
  const PipelineStage& stage = torch_->part.stage;
  std::deque<Torch::InFlight>& inFlight = torch_->inFlight[0];
  if (stage.isFirst() && stage.virtuals > 1)
    torch_->links.receive(inFlight.front().out.sizes(), torch_->weights[0].scalar_type());
  inFlight.clear();
}

double Model::waited() const { return torch_->links.waited(); }

}  // namespace weft::train
