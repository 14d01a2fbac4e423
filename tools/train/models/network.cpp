// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/network.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "tools/train/models/operators.h"
#include "tools/train/models/recomputed.h"

namespace weft::train {
namespace {

// Under autocast x may be bf16, and the gain fp32.
Tensor layerNorm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon) {
  return ops::layerNorm(x.to(gain.scalar_type()), gain, bias, epsilon);
}

}  // namespace

Network::Network(NetworkParts parts) : parts_(std::move(parts)) {
  turnTo(0);
  const Parameters own = parametersOf(shape(), {parts_.group.part(), parts_.stage});
  for (const Layer& layer : parametersOf(shape()).layers) {
    const auto isIt = [&](const Layer& each) { return own.inWhole[each.first] == layer.first; };
    const auto found = std::ranges::find_if(own.layers, isIt);
    inPart_.push_back(found == own.layers.end() ? Layer{} : *found);
  }
}

void Network::turnTo(int64_t own) {
  const auto [first, end] = layersOf(shape(), parts_.stage, parts_.stage.run(own));
  ownFirst_ = static_cast<size_t>(first);
  ownEnd_ = static_cast<size_t>(end);
}

Tensor Network::scores(const Batch&, Tensor) {
  throw std::logic_error("this family classifies nothing");
}

Tensor Network::inOrder(size_t, const Tensor& drawn) const { return drawn; }

Tensor Network::linear(const Tensor& x, const LinearAt& where) const {
  return ops::linear(x, at(where.weight), where.hasBias() ? at(where.bias) : Tensor());
}

Tensor Network::outputsOf(const Tensor& x, const LinearAt& where) const {
  if (!parts_.places.areCut()) return outputsOfAll(x, where);
  Tensor y = parts_.places.productOf(x, at(where.weight));
  return where.hasBias() ? y.add_(at(where.bias).to(y.scalar_type())) : y;
}

Tensor Network::outputsOfAll(const Tensor& x, const LinearAt& where) const {
  return parts_.group.outputsOf(x, at(where.weight), where.hasBias() ? at(where.bias) : Tensor());
}

Tensor Network::sumOf(const Tensor& x) const {
  return parts_.places.areCut() ? parts_.places.sumOf(x) : parts_.group.sumOf(x);
}

Tensor Network::shared(size_t parameter) const {
  return parts_.places.areCut() ? parts_.group.shared(at(parameter)) : at(parameter);
}

Tensor Network::dropOf(const Tensor& x, size_t layer, DropAt place) const {
  return dropout_(x, layer, place, parts_.places.before(x.size(1)) * x.size(2));
}

Tensor Network::ofInputs(const Tensor& x, const LinearAt& where) const {
  if (parts_.group.isAlone()) return linear(x, where);
  const Tensor sum = sumOf(ops::linear(x, at(where.weight)));
  return where.hasBias() ? sum + shared(where.bias) : sum;
}

Tensor Network::wordsOf(size_t words, const Tensor& tokens) const {
  if (parts_.group.isAlone()) return ops::embedding(at(words), tokens);
  const auto [first, end] = rangeOf(shape().vocabulary, parts_.group.part());
  const Tensor isOthers = (tokens < first).logical_or(tokens >= end);
  const Tensor found = ops::embedding(at(words), (tokens - first).masked_fill(isOthers, 0));
  return sumOf(found.masked_fill(isOthers.unsqueeze(-1), 0));
}

Tensor Network::wordLoss(const Tensor& outputs, const Tensor& targets,
                         at::Reduction::Reduction reduction) const {
  const Tensor logits = outputs.reshape({-1, outputs.size(-1)}).to(at::kFloat);
  if (parts_.group.isAlone()) return at::cross_entropy_loss(logits, targets, {}, reduction);
  const Tensor losses = lossesOfShares(logits, targets);
  return reduction == at::Reduction::Mean ? losses.mean() : losses;
}

// log(sum exp l) - l of the target, of which each rank has a part (section 3 of Megatron-LM). Less
// the largest logit, so that nothing overflows.
Tensor Network::lossesOfShares(const Tensor& logits, const Tensor& targets) const {
  const TensorGroup& group = parts_.group;
  const auto [first, end] = rangeOf(shape().vocabulary, group.part());
  const Tensor isOthers = (targets < first).logical_or(targets >= end);
  const Tensor less = logits - group.largestOf(logits.amax(-1)).unsqueeze(-1);
  const Tensor own = less.gather(-1, (targets - first).masked_fill(isOthers, 0).unsqueeze(-1));
  const Tensor target = own.squeeze(-1).masked_fill(isOthers, 0);
  const Tensor sums = group.sumOf(at::stack({less.exp().sum(-1), target}));
  return sums[0].log() - sums[1];
}

Tensor Network::nextTokenLoss(const Tensor& x, const LinearAt& output, const Batch& batch) const {
  const auto tokens = static_cast<int64_t>(batch.samples * batch.length);
  return wordLoss(outputsOf(x, output), tensorOf(batch.targets, {tokens}), at::Reduction::Mean);
}

Tensor Network::norm(const Tensor& x, const NormAt& where, double epsilon) const {
  return layerNorm(x, shared(where.gain), shared(where.bias), epsilon);
}

Tensor Network::normOfAll(const Tensor& x, const NormAt& where, double epsilon) const {
  return layerNorm(x, at(where.gain), at(where.bias), epsilon);
}

Tensor Network::projections(const Tensor& x, const LinearAt& where) const {
  const Tensor y = outputsOf(x, where);
  return y.view({y.size(0), y.size(1), 3, ownHeads(), headWidth()}).permute({2, 0, 3, 1, 4});
}

Tensor Network::attention(const Tensor& x, const BlockAt& block, const Tensor& hidden,
                          Scores scores) const {
  const Tensor qkv = projections(x, block.qkv);
  return attend(qkv[0], qkv[1], qkv[2], block, hidden, scores);
}

Tensor Network::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                       const BlockAt& block, const Tensor& hidden, Scores scores) const {
  const double scale =
      scores == Scores::kScaled ? 1.0 / std::sqrt(static_cast<double>(query.size(-1))) : 1.0;
  const Tensor products = ops::matmul(query * scale, key.transpose(-2, -1))
                              .masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  const int64_t length = query.size(2), ofOthers = parts_.group.part().index * ownHeads();
  const Tensor weights = dropout_(ops::softmax(products), block.layer, DropAt::kAttentionWeights,
                                  ofOthers * length * length);
  const Tensor mixed =
      ops::matmul(weights, value).transpose(1, 2).reshape({query.size(0), length, -1});
  return dropOf(ofInputs(mixed, block.attention), block.layer, DropAt::kAttention);
}

Tensor Network::mlp(const Tensor& x, const BlockAt& block, const char* gelu) const {
  return dropOf(ofInputs(ops::gelu(outputsOf(x, block.expand), gelu), block.contract), block.layer,
                DropAt::kMlp);
}

Tensor Network::throughBlock(const BlockAt& block, const Tensor& x,
                             const std::function<Tensor(const Tensor&)>& compute) {
  return through({block.layer}, x, [&] {
    if (!recomputesBlocks_ || !x.requires_grad()) return compute(x);
    // Another batch may have gone forward until then.
    const auto again = [this, compute, dropout = dropout_](const Tensor& in) {
      const Dropout current = std::exchange(dropout_, dropout);
      const Tensor y = compute(in);
      dropout_ = current;
      return y;
    };
    return recomputed(x, again, offloadFile_);
  });
}

void Network::tell(const LayerHooks::Hook& hook, const std::vector<size_t>& layers,
                   Pass pass) const {
  if (!hook) return;
  for (const size_t layer : layers) hook(inPart_[layer].first, inPart_[layer].count, pass);
}

void Network::backwardEnded() {
  const std::vector<size_t> done = std::exchange(inBackward_, {});
  tell(hooks_.after, done, Pass::kBackward);
}

Tensor tensorOf(const std::vector<int64_t>& values, at::IntArrayRef shape) {
  // from_blob takes no const pointer; the clone is what is used.
  return at::from_blob(const_cast<int64_t*>(values.data()), shape, at::kLong).clone();
}

Tensor futureMask(int64_t length) { return at::ones({length, length}, at::kBool).triu(1); }

}  // namespace weft::train
