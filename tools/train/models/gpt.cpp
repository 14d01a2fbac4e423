// SPDX-License-Identifier: Apache-2.0
// GPT-2: pre-LayerNorm blocks of causal attention and a gelu (tanh) MLP, learned positions.
#include "tools/train/models/gpt_layers.h"
#include "tools/train/models/network.h"

namespace weft::train {
namespace {

class Gpt : public Network {
 public:
  explicit Gpt(NetworkParts parts)
      : Network(std::move(parts)), layers_(layersOf<GptLayers>(shape())) {}

  Tensor forward(const Batch& batch, Tensor x) override {
    const auto samples = static_cast<int64_t>(batch.samples),
               length = static_cast<int64_t>(batch.length);
    const Tensor tokens = tensorOf(batch.tokens, {samples, length});
    const Tensor future = futureMask(length);
    x = through({layers_.embeddings}, x, [&] {
      return embedded(wordsOf(layers_.words, tokens) +
                      ownPlaces(at(layers_.positions).narrow(0, 0, length), 0));
    });
    for (const BlockAt& block : layers_.blocks) {
      x = throughBlock(block, x, [=, this](const Tensor& in) {
        const Tensor y = in + attention(norm(in, block.norm1, kEpsilon), block, future);
        return y + mlp(norm(y, block.norm2, kEpsilon), block, "tanh");
      });
    }
    const auto head = [&] {
      return nextTokenLoss(norm(x, layers_.norm, kEpsilon), {layers_.output, LinearAt::kNone},
                           batch);
    };
    return shape().tied ? through({layers_.embeddings, layers_.head}, x, head)
                        : through({layers_.head}, x, head);
  }

 private:
  static constexpr double kEpsilon = 1e-5;

  GptLayers layers_;
};

}  // namespace

std::unique_ptr<Network> makeGpt(NetworkParts parts) {
  return std::make_unique<Gpt>(std::move(parts));
}

}  // namespace weft::train
