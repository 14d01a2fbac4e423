// SPDX-License-Identifier: Apache-2.0
// What the families share: parameters as tensors, the layers that blocks are made of, and hooks
// around the use of parameters.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "tools/train/batch.h"
#include "tools/train/model.h"
#include "tools/train/models/declaration.h"
#include "tools/train/models/dropout.h"
#include "tools/train/models/places.h"
#include "tools/train/models/tensor_group.h"
#include "tools/train/offload_file.h"

namespace weft::train {

using at::Tensor;

// Whether products of queries and keys are divided by the root of their width.
enum class Scores { kScaled, kAsTheyAre };

// Where the parameters of a family are.
template <class Layers>
Layers layersOf(const ModelShape& shape) {
  Declaration declaration;
  return Layers(shape, declaration);
}

// What a network is made of: weights that tensor parallelism has cut are the group's part of them, and
// those of other stages are undefined.
struct NetworkParts {
  ModelShape shape;  // of all parts
  TensorGroup group;
  Places places;  // of this rank, between layers that are cut
  PipelineStage stage;
  std::vector<Tensor> weights;
};

class Network {
 public:
  explicit Network(NetworkParts parts);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;

  // The run of layers, of those of this stage, that forward() goes through; at first the first one.
  void turnTo(int64_t own);
  // Of a batch and what the run before has made of it, what this run makes: the last one the loss.
  virtual Tensor forward(const Batch& batch, Tensor x) = 0;
  // The same as far as what a classification says: of the last stage [samples, classes], not normalized.
  virtual Tensor scores(const Batch& batch, Tensor x);
  // Initial weights in the order of rows that the family wants.
  virtual Tensor inOrder(size_t parameter, const Tensor& drawn) const;

  void onLayer(LayerHooks hooks) { hooks_ = std::move(hooks); }
  // What the next batches drop.
  void dropOut(const Dropout& dropout) { dropout_ = dropout; }
  // Blocks keep what goes into them and no more; in a file, if there is one.
  void recomputeBlocks(std::shared_ptr<OffloadFile> file) {
    recomputesBlocks_ = true;
    offloadFile_ = std::move(file);
  }
  // The last use of parameters in a backward pass is over.
  void backwardEnded();

  const ModelShape& shape() const { return parts_.shape; }

 protected:
  const Tensor& at(size_t parameter) const { return parts_.weights[parameter]; }

  int64_t headWidth() const { return shape().hidden / shape().heads; }
  int64_t ownHeads() const { return shape().heads / parts_.group.part().count; }
  // Fused projections [3, heads, width] of a sequence: [3, batch, own heads, length, width].
  Tensor projections(const Tensor& x, const LinearAt& where) const;
  // A layer that is whole on every rank.
  Tensor linear(const Tensor& x, const LinearAt& where) const;
  // One that is cut by its outputs: this rank's share of them at all places, of x at its own places.
  Tensor outputsOf(const Tensor& x, const LinearAt& where) const;
  // The same of x that has all places, alike on all ranks.
  Tensor outputsOfAll(const Tensor& x, const LinearAt& where) const;
  // One that is cut by its inputs: all outputs at this rank's places, of its share of x at all places.
  Tensor ofInputs(const Tensor& x, const LinearAt& where) const;
  // An embedding that is cut by its words, at this rank's places of all tokens.
  Tensor wordsOf(size_t words, const Tensor& tokens) const;
  // Of what is known of all places, this rank's.
  Tensor ownPlaces(const Tensor& x, int64_t dimension) const {
    return parts_.places.own(x, dimension);
  }
  // All places, for layers that each rank computes whole.
  Tensor allPlaces(const Tensor& x) const { return parts_.places.all(x); }
  // A parameter that all ranks have alike and use at their own places: its gradient is the sum.
  Tensor shared(size_t parameter) const;
  // The cross entropy of predicting `targets`, one for each row, of this rank's share of an output matrix's rows.
  Tensor wordLoss(const Tensor& outputs, const Tensor& targets,
                  at::Reduction::Reduction reduction) const;
  // The mean of that over all tokens of a batch.
  Tensor nextTokenLoss(const Tensor& x, const LinearAt& output, const Batch& batch) const;
  Tensor norm(const Tensor& x, const NormAt& where, double epsilon) const;
  // Of x that has all places, alike on all ranks.
  Tensor normOfAll(const Tensor& x, const NormAt& where, double epsilon) const;
  // Softmax attention and its output. Queries, keys and values of the own heads are [batch, heads,
  // length, width], `hidden` is true where a query must not look.
  Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const BlockAt& block,
                const Tensor& hidden, Scores scores = Scores::kScaled) const;
  // A block's attention with fused projections [3, heads, width], and its MLP. `gelu` is "none" for
  // the exact one or "tanh". Both drop of what they give.
  Tensor attention(const Tensor& x, const BlockAt& block, const Tensor& hidden,
                   Scores scores = Scores::kScaled) const;
  Tensor mlp(const Tensor& x, const BlockAt& block, const char* gelu = "none") const;
  // Of what goes into a classifier.
  Tensor pooled(const Tensor& x, size_t head) const { return dropout_(x, head, DropAt::kMlp); }
  // Of what goes into the first block.
  Tensor embedded(const Tensor& x) const { return dropOf(x, 0, DropAt::kEmbedding); }

  // Passes x through layers: runs `compute`, which reads their parameters and no others, between the
  // hooks. Backward through it starts with its result, and ends where that of the layers before
  // starts. Where the last of the layers is another run's, x stays as it is.
  template <class Compute>
  Tensor through(std::initializer_list<size_t> layers, const Tensor& x, Compute compute) {
    if (!isOwn(*(layers.end() - 1))) return x;
    if (!hooks_.before && !hooks_.after) return compute();
    tell(hooks_.before, layers, Pass::kForward);
    Tensor result = compute();
    tell(hooks_.after, layers, Pass::kForward);
    if (!result.requires_grad()) return result;  // validation
    result.register_hook([this, used = std::vector<size_t>(layers)](const Tensor&) {
      backwardEnded();
      inBackward_ = used;
      tell(hooks_.before, used, Pass::kBackward);
    });
    return result;
  }

  // A block as one stage. `compute` owns what it needs, as backward may run it again.
  Tensor throughBlock(const BlockAt& block, const Tensor& x,
                      const std::function<Tensor(const Tensor&)>& compute);

 private:
  Tensor dropOf(const Tensor& x, size_t layer, DropAt place) const;
  Tensor sumOf(const Tensor& x) const;
  Tensor lossesOfShares(const Tensor& logits, const Tensor& targets) const;
  bool isOwn(size_t layer) const { return ownFirst_ <= layer && layer < ownEnd_; }
  void tell(const LayerHooks::Hook& hook, const std::vector<size_t>& layers, Pass pass) const;

  NetworkParts parts_;
  size_t ownFirst_ = 0, ownEnd_ = 0;  // layers of the run
  std::vector<Layer> inPart_;         // by layer of the whole model, those that this stage has
  LayerHooks hooks_;
  Dropout dropout_;
  bool recomputesBlocks_ = false;
  std::shared_ptr<OffloadFile> offloadFile_;
  std::vector<size_t> inBackward_;  // the layers whose backward runs
};

std::unique_ptr<Network> makeGpt(NetworkParts parts);
std::unique_ptr<Network> makeGptj(NetworkParts parts);
std::unique_ptr<Network> makeGptNeo(NetworkParts parts);
std::unique_ptr<Network> makeNeox(NetworkParts parts);
// BERT and RoBERTa.
std::unique_ptr<Network> makeBert(NetworkParts parts);

// Of a batch.
Tensor tensorOf(const std::vector<int64_t>& values, at::IntArrayRef shape);

// [length, length], true where a token must not look because it is further on.
Tensor futureMask(int64_t length);

}  // namespace weft::train
