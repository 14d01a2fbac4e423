// SPDX-License-Identifier: Apache-2.0
// GPT-J: y = x + rotaryAttention(norm x) + mlp(norm x) with one norm, neighbouring rows of a
// quarter of each head turned as pairs, projections without biases, a gelu (tanh), an output matrix
// of its own with a bias.
#include "tools/train/models/gptj_layers.h"
#include "tools/train/models/network.h"
#include "tools/train/models/rotation.h"

namespace weft::train {
namespace {

class Gptj : public Network {
 public:
  explicit Gptj(NetworkParts parts)
      : Network(std::move(parts)), layers_(layersOf<GptjLayers>(shape())) {}

  Tensor forward(const Batch& batch, Tensor x) override {
    const auto samples = static_cast<int64_t>(batch.samples),
               length = static_cast<int64_t>(batch.length);
    const Tensor tokens = tensorOf(batch.tokens, {samples, length});
    const Tensor future = futureMask(length);
    const Rotation turn(length, headWidth(), Rotary::kPartial, Pairs::kNeighbours);
    x = through({layers_.embeddings}, x, [&] { return embedded(wordsOf(layers_.words, tokens)); });
    for (const BlockAt& block : layers_.blocks) {
      x = throughBlock(block, x, [=, this](const Tensor& in) {
        const Tensor normed = norm(in, block.norm1, kEpsilon);
        const Tensor qkv = projections(normed, block.qkv);
        return in + attend(turn(qkv[0]), turn(qkv[1]), qkv[2], block, future) +
               mlp(normed, block, "tanh");
      });
    }
    return through({layers_.head}, x, [&] {
      return nextTokenLoss(norm(x, layers_.norm, kEpsilon), layers_.output, batch);
    });
  }

 private:
  static constexpr double kEpsilon = 1e-5;

  GptjLayers layers_;
};

}  // namespace

std::unique_ptr<Network> makeGptj(NetworkParts parts) {
  return std::make_unique<Gptj>(std::move(parts));
}

}  // namespace weft::train
