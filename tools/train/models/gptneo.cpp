// SPDX-License-Identifier: Apache-2.0
// GPT-Neo: GPT-2's blocks, but for scores that are not scaled, projections without biases, and
// every second block that looks back on a window alone.
#include <ATen/ops/ones.h>

#include "tools/train/models/gptneo_layers.h"
#include "tools/train/models/network.h"

namespace weft::train {
namespace {

class GptNeo : public Network {
 public:
  explicit GptNeo(NetworkParts parts)
      : Network(std::move(parts)), layers_(layersOf<GptNeoLayers>(shape())) {}

  Tensor forward(const Batch& batch, Tensor x) override {
    const auto samples = static_cast<int64_t>(batch.samples),
               length = static_cast<int64_t>(batch.length);
    const Tensor tokens = tensorOf(batch.tokens, {samples, length});
    const Tensor future = futureMask(length);
    const Tensor beyond = future | at::ones({length, length}, at::kBool).tril(-shape().window);
    x = through({layers_.embeddings}, x, [&] {
      return embedded(wordsOf(layers_.words, tokens) +
                      ownPlaces(at(layers_.positions).narrow(0, 0, length), 0));
    });
    for (size_t i = 0; i < layers_.blocks.size(); ++i) {
      const BlockAt& block = layers_.blocks[i];
      const Tensor& hidden = i % 2 == 0 ? future : beyond;
      x = throughBlock(block, x, [=, this](const Tensor& in) {
        const Tensor y =
            in + attention(norm(in, block.norm1, kEpsilon), block, hidden, Scores::kAsTheyAre);
        return y + mlp(norm(y, block.norm2, kEpsilon), block, "tanh");
      });
    }
    return through({layers_.embeddings, layers_.head}, x, [&] {
      return nextTokenLoss(norm(x, layers_.norm, kEpsilon), {layers_.words, LinearAt::kNone},
                           batch);
    });
  }

 private:
  static constexpr double kEpsilon = 1e-5;

  GptNeoLayers layers_;
};

}  // namespace

std::unique_ptr<Network> makeGptNeo(NetworkParts parts) {
  return std::make_unique<GptNeo>(std::move(parts));
}

}  // namespace weft::train
