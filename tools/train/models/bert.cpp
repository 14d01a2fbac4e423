// SPDX-License-Identifier: Apache-2.0
// BERT: blocks of bidirectional attention and an exact gelu MLP, post-LN or pre-LN, with the heads
// for masked words and for the next sentence; and RoBERTa, which has the first of them.
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/where.h>

#include "tools/train/models/bert_layers.h"
#include "tools/train/models/network.h"
#include "tools/train/models/operators.h"

namespace weft::train {
namespace {

class Bert : public Network {
 public:
  explicit Bert(NetworkParts parts)
      : Network(std::move(parts)), layers_(layersOf<BertLayers>(shape())) {}

  Tensor forward(const Batch& batch, Tensor x) override {
    const auto samples = static_cast<int64_t>(batch.samples),
               length = static_cast<int64_t>(batch.length);
    if (shape().classes > 0) {
      x = scores(batch, x);
      return x.dim() == 2 ? classLoss(x, tensorOf(batch.labels, {samples})) : x;
    }
    x = body(batch, x);
    return through({layers_.embeddings, layers_.head}, x, [&] {
      const Tensor all = allPlaces(x);
      const Tensor words = maskedWordsLoss(all, tensorOf(batch.targets, {samples, length}));
      return isRoberta() ? words : words + nextSentenceLoss(all, tensorOf(batch.labels, {samples}));
    });
  }

  Tensor scores(const Batch& batch, Tensor x) override {
    x = body(batch, x);
    return through({layers_.head}, x, [&] { return classScores(x); });
  }

 private:
  bool isRoberta() const { return shape().family == Family::kRoberta; }

  // All but the head.
  Tensor body(const Batch& batch, Tensor x) {
    const auto samples = static_cast<int64_t>(batch.samples),
               length = static_cast<int64_t>(batch.length);
    const Tensor used = tensorOf(batch.used, {samples, 1, 1, 1});
    const Tensor padding = at::arange(length, at::kLong) >= used;  // [samples, 1, 1, length]
    x = through({layers_.embeddings}, x, [&] { return embeddings(batch, {samples, length}); });
    for (const BlockAt& block : layers_.blocks) {
      x = throughBlock(block, x, [=, this](const Tensor& in) {
        return shape().preNorm ? preNorm(in, block, padding) : postNorm(in, block, padding);
      });
    }
    return x;
  }

  Tensor embeddings(const Batch& batch, at::IntArrayRef size) const {
    const Tensor sum =
        wordsOf(layers_.words, tensorOf(batch.tokens, size)) +
        ops::embedding(shared(layers_.segments), ownPlaces(tensorOf(batch.segments, size), 1)) +
        places(batch, size);
    return embedded(norm(sum, layers_.embeddingNorm, epsilon_));
  }

  Tensor places(const Batch& batch, at::IntArrayRef size) const {
    if (!isRoberta()) return ownPlaces(at(layers_.positions).narrow(0, 0, size[1]), 0);
    const Tensor counted = at::arange(size[1], at::kLong);
    const Tensor place = at::where(counted < tensorOf(batch.used, {size[0], 1}),
                                   counted + BertLayers::kFirstPlace, BertLayers::kPlaceOfPadding);
    return ops::embedding(shared(layers_.positions), ownPlaces(place, 1));
  }

  Tensor preNorm(const Tensor& x, const BlockAt& block, const Tensor& padding) const {
    const Tensor y = x + attention(norm(x, block.norm1, epsilon_), block, padding);
    return y + mlp(norm(y, block.norm2, epsilon_), block);
  }

  Tensor postNorm(const Tensor& x, const BlockAt& block, const Tensor& padding) const {
    const Tensor y = norm(x + attention(x, block, padding), block.norm1, epsilon_);
    return norm(y + mlp(y, block), block.norm2, epsilon_);
  }

  // The mean of the samples' mean losses; only masked places reach the large output matrix.
  Tensor maskedWordsLoss(const Tensor& x, const Tensor& targets) const {
    const Tensor masked = targets.ne(Batch::kNoTarget);
    const Tensor weights = masked.to(at::kFloat) / masked.sum(1, true) / x.size(0);
    const Tensor places = at::nonzero(masked.flatten()).squeeze(1);
    const Tensor seen = x.flatten(0, 1).index_select(0, places);
    const Tensor transformed =
        normOfAll(ops::gelu(linear(seen, layers_.transform)), layers_.transformNorm, epsilon_);
    const Tensor losses = wordLoss(outputsOfAll(transformed, {layers_.words, layers_.outputBias}),
                                   targets.flatten().index_select(0, places), at::Reduction::None);
    return (losses * weights.flatten().index_select(0, places)).sum();
  }

  Tensor pooledFirst(const Tensor& x) const {
    return ops::tanh(linear(x.select(1, 0), layers_.pooler));
  }

  Tensor nextSentenceLoss(const Tensor& x, const Tensor& labels) const {
    return classLoss(linear(pooledFirst(x), layers_.nextSentence).to(at::kFloat), labels);
  }

  Tensor classScores(const Tensor& x) const {
    return linear(pooled(pooledFirst(x), layers_.head), layers_.classifier).to(at::kFloat);
  }

  Tensor classLoss(const Tensor& scores, const Tensor& labels) const {
    return at::cross_entropy_loss(scores, labels);
  }

  BertLayers layers_;
  const double epsilon_ = isRoberta() ? 1e-5 : 1e-12;
};

}  // namespace

std::unique_ptr<Network> makeBert(NetworkParts parts) {
  return std::make_unique<Bert>(std::move(parts));
}

}  // namespace weft::train
