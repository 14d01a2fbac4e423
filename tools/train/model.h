// SPDX-License-Identifier: Apache-2.0
// A model over weights and gradients in the caller's memory. All libtorch types stay behind this
// interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tools/train/batch.h"
#include "tools/train/offload_file.h"
#include "tools/train/parameters.h"
#include "tools/train/residency.h"
#include "weft/weft.hpp"

namespace weft::train {

enum class Element { kFloat32, kBfloat16, kFloat16 };

// Where one parameter lies.
struct ParameterMemory {
  void* weights;
  void* gradient;
};

// Of matrix products. With autocast to bf16 they take bf16 copies of fp32 weights; weights,
// gradients, the residual stream and the loss stay fp32. Weights that are bf16 or fp16 themselves
// need no autocast: then everything but the loss is of their type, computed in fp32 and rounded where that is fp16.
enum class Compute { kAsWeights, kAutocastBfloat16 };

// Around each use of a layer, on the thread of the pass. `before` may still bring the layer's
// weights to their place in the buffer; once `after` is called they are not read until the next
// `before`. A tied embedding is used twice in a pass, the second time together with the head. When
// the last use in a backward pass ends, the layer's gradients are complete.
struct LayerHooks {
  using Hook = std::function<void(size_t firstParameter, size_t count, Pass pass)>;
  Hook before;
  Hook after;
};

// What joins two stages of a pipeline, of which the one that is earlier in forward is rank 0: activations
// go through one communicator, their gradients through the other. Null where there is no such stage.
struct StageLink {
  Communicator* activations = nullptr;
  Communicator* gradients = nullptr;
};

// This rank's part of a model, and the ranks that have the rest: those that share each layer with it, and make all
// calls but set() together, null where it has layers alone; and the stages before and after it. With
// virtual stages the last one is before the first.
struct ModelGroups {
  ModelPart part;
  Communicator* tensor = nullptr;
  StageLink before, after;
  bool cutsPlaces =
      false;  // sequence parallelism: places, where those of `tensor` do not share a layer
};

// One thread at a time.
class Model {
 public:
  // Parameters and their gradients are views of the caller's memory, which must outlive this: one for
  // each of parametersOf(shape, groups.part), which all parameters here are numbered by. Nothing of
  // the memory is read or written here.
  Model(const ModelShape& shape, Compute compute, Element weights, Element gradients,
        std::span<const ParameterMemory> memory, const ModelGroups& groups = {});
  ~Model();

  // Draws initial weights of the whole model from a seed, in fp32 whatever the model computes with,
  // one parameter after the other, and gives those of which this rank has a part, whole; they are read
  // only during the call. Nothing of the model's memory is touched.
  void draw(uint64_t seed, const std::function<void(size_t parameter, const float*)>& take) const;
  // Fills the weights with those, or this rank's part of them, rounded to nearest.
  void initialize(uint64_t seed);
  // Fills those of one parameter, rounded to nearest.
  void set(size_t parameter, const float* weights);

  // Called in backward as soon as a parameter's gradient is complete, on the thread of backward.
  void onGradient(std::function<void(size_t parameter)> hook);
  void onLayer(LayerHooks hooks);
  // From now on forward() drops this share of the embedding, of attention weights and of what each
  // block's attention and MLP give, by masks that follow from the seed and the batch's place in the
  // training.
  void dropOut(double share, uint64_t seed);
  // From now on forward() keeps of each block what went into it, and backward computes the block
  // once more. The gradients are the same bits. What went in is in `file` meanwhile, if there is one.
  void recomputeBlocks(std::shared_ptr<OffloadFile> file = nullptr);

  // Of one of this stage's runs of layers, its own-th: the loss of a batch, in nats: GPT's and NeoX's mean over all tokens; for BERT, the mean over
  // the samples of each one's mean masked-LM loss, so that how a batch is split over ranks makes no
  // difference, plus the mean next-sentence loss; for a classification, the mean over the samples. 0 where a later
  // run has it: the stage that has that gets
  // this one's activations, as this one waits for those of the run before. Several batches may go
  // forward before backward.
  double forward(const Batch& batch, int64_t own = 0);
  // The same for validation: no backward follows.
  double evaluate(const Batch& batch, int64_t own = 0);
  // Of a classification, whose stages have one run each: what speaks for each class, [samples, classes].
  // Empty where a later stage has it.
  std::vector<float> scores(const Batch& batch);
  // Adds `scale` * the gradients of that loss, of the first of the batches that have no backward through
  // this run yet, to the gradients. `scale` counts where the loss is; other runs wait for what the next one sends.
  void backward(double scale, int64_t own = 0);
  // No backward follows of the one batch that went forward through the first run of each stage.
  void forget();
  // Seconds that this stage has waited for its neighbours so far.
  double waited() const;

 private:
  struct Torch;
  std::unique_ptr<Torch> torch_;
};

}  // namespace weft::train
