// SPDX-License-Identifier: Apache-2.0
// GPT-NeoX and Pythia: y = x + rotaryAttention(norm1 x) + mlp(norm2 x), rotary positions on a
// quarter of each head, an exact gelu, an output matrix of its own.
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "tools/train/models/neox_layers.h"
#include "tools/train/models/network.h"
#include "tools/train/models/rotary.h"
#include "tools/train/models/rotation.h"

namespace weft::train {
namespace {

class Neox : public Network {
 public:
  explicit Neox(NetworkParts parts)
      : Network(std::move(parts)), layers_(layersOf<NeoxLayers>(shape())) {}

  // The weights are those of partial rotary, whatever the form.
  Tensor inOrder(size_t parameter, const Tensor& drawn) const override {
    const auto isTurned = [&](const BlockAt& block) {
      return parameter == block.qkv.weight || parameter == block.qkv.bias;
    };
    if (shape().rotary == Rotary::kPartial || std::ranges::none_of(layers_.blocks, isTurned))
      return drawn;
    return drawn.index_select(0, at::tensor(zeroFrequencyQkvOrder(shape().heads, headWidth())));
  }

  Tensor forward(const Batch& batch, Tensor x) override {
    const auto samples = static_cast<int64_t>(batch.samples),
               length = static_cast<int64_t>(batch.length);
    const Tensor tokens = tensorOf(batch.tokens, {samples, length});
    const Tensor future = futureMask(length);
    const Rotation turn(length, headWidth(), shape().rotary);
    x = through({layers_.embeddings}, x, [&] { return embedded(wordsOf(layers_.words, tokens)); });
    for (const BlockAt& block : layers_.blocks) {
      x = throughBlock(block, x, [=, this](const Tensor& in) {
        return in + rotaryAttention(norm(in, block.norm1, kEpsilon), block, turn, future) +
               mlp(norm(in, block.norm2, kEpsilon), block);
      });
    }
    return through({layers_.head}, x, [&] {
      return nextTokenLoss(norm(x, layers_.norm, kEpsilon), {layers_.output, LinearAt::kNone},
                           batch);
    });
  }

 private:
  static constexpr double kEpsilon = 1e-5;

  Tensor rotaryAttention(const Tensor& x, const BlockAt& block, const Rotation& turn,
                         const Tensor& future) const {
    const Tensor y = outputsOf(x, block.qkv);
    const Tensor qkv = y.view({y.size(0), y.size(1), ownHeads(), 3, headWidth()})
                           .permute({3, 0, 2, 1, 4});  // [3, batch, heads, length, width]
    return attend(turn(qkv[0]), turn(qkv[1]), qkv[2], block, future);
  }

  NeoxLayers layers_;
};

}  // namespace

std::unique_ptr<Network> makeNeox(NetworkParts parts) {
  return std::make_unique<Neox>(std::move(parts));
}

}  // namespace weft::train
