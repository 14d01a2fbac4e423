// SPDX-License-Identifier: Apache-2.0
// The model: a GPT over bytes. Pre-LayerNorm blocks of causal attention and a gelu (tanh) MLP,
// learned positions, an output projection of its own (untied: its gradient is ready first, the
// embedding's last).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/train/flat_layout.h"

namespace weft::train {

constexpr int64_t kVocabulary = 256;  // a token is a byte

struct GptShape {
  int64_t layers;
  int64_t hidden;  // a multiple of heads
  int64_t heads;
  int64_t length;  // tokens in a sample
};

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  double initialMean;  // normally distributed at first,
  double initialDeviation;
  bool decay;  // false for biases, LayerNorms and embeddings

  size_t size() const;
};

// In order of use. Matrices are [outputs, inputs]. Deviations are GPT-2's: 0.02, and 0.02 / sqrt(2
// layers) for the two projections of a block that add to the residual stream.
std::vector<Parameter> gptParameters(const GptShape& shape);

// All libtorch types stay behind this interface. One thread at a time.
class Gpt {
 public:
  // Parameters and their gradients are views of `weights` and `gradients`, which are laid out by
  // `layout` and must outlive this. With bf16, forward runs under autocast: matrix products take
  // bf16 copies of the fp32 weights; weights, gradients, the residual stream and the loss stay
  // fp32.
  Gpt(const GptShape& shape, bool bf16, const FlatLayout& layout, std::span<float> weights,
      std::span<float> gradients);
  ~Gpt();

  // Fills the weights from a seed.
  void initialize(uint64_t seed);

  // Called in backward as soon as a parameter's gradient is complete, on the thread of backward.
  void onGradient(std::function<void(size_t parameter)> hook);

  // The mean loss of a batch, in nats per byte. Samples have length + 1 bytes.
  double forward(std::span<const std::span<const uint8_t>> samples);
  // Adds `scale` * the gradients of that loss to the gradients.
  void backward(double scale);

 private:
  struct Torch;
  std::unique_ptr<Torch> torch_;
};

}  // namespace weft::train
