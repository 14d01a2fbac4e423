// SPDX-License-Identifier: Apache-2.0
// Activations are [length, samples, width], as torch::nn::MultiheadAttention wants them.
#include "tests/train/serial_models.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/transformer.h>

#include <cmath>
#include <vector>

namespace weft::train {
namespace {

namespace nn = torch::nn;
namespace functional = torch::nn::functional;
using torch::Tensor;

// [length, samples] of [samples, length].
Tensor turned(const std::vector<int64_t>& values, const Batch& batch) {
  return torch::tensor(values).view({static_cast<int64_t>(batch.samples), -1}).t();
}

Tensor futureMask(const Batch& batch) {
  return nn::TransformerImpl::generate_square_subsequent_mask(static_cast<int64_t>(batch.length));
}

nn::LayerNorm layerNorm(int64_t width, double epsilon) {
  return nn::LayerNorm(nn::LayerNormOptions({width}).eps(epsilon));
}

nn::Linear linearWithoutBias(int64_t inputs, int64_t outputs) {
  return nn::Linear(nn::LinearOptions(inputs, outputs).bias(false));
}

// The mean of the losses of each next byte.
Tensor nextByteLoss(const Tensor& logits, const Batch& batch) {
  return functional::cross_entropy(logits.flatten(0, 1), turned(batch.targets, batch).flatten());
}

// What masks say: `future` is added to scores, `padding` is true where nobody looks; and what a layer drops.
struct Masks {
  Tensor future, padding;
  const SerialModel::Dropping& drops;
  int64_t layer = 0;

  Masks of(size_t block) const { return {future, padding, drops, static_cast<int64_t>(block) + 1}; }
  // Of [length, samples, width].
  Tensor dropped(const Tensor& x, int place) const {
    return drops ? drops(x.transpose(0, 1), layer, place).transpose(0, 1) : x;
  }
  // Values by weights that follow from the scores, all by head.
  Tensor mixed(const Tensor& scores, const Tensor& values) const {
    Tensor seen = future.defined() ? scores + future : scores;
    if (padding.defined()) seen = seen.masked_fill(padding.unsqueeze(1).unsqueeze(1), -INFINITY);
    const Tensor weights = seen.softmax(-1);
    return torch::matmul(drops ? drops(weights, layer, 1) : weights, values)
        .permute({2, 0, 1, 3})
        .flatten(2);
  }
};

// Queries, keys and values of [length, samples, width], by head.
std::vector<Tensor> byHead(const Tensor& qkv, int64_t heads) {
  std::vector<Tensor> parts;
  for (const Tensor& part : qkv.chunk(3, -1))
    parts.push_back(part.unflatten(-1, {heads, -1}).permute({1, 2, 0, 3}));
  return parts;
}

Tensor scaledScores(const Tensor& queries, const Tensor& keys) {
  return torch::matmul(queries, keys.transpose(2, 3)) / std::sqrt(queries.size(3));
}

struct SelfAttention : nn::Module {
  nn::MultiheadAttention heads;

  explicit SelfAttention(const ModelShape& shape)
      : heads(register_module("heads", nn::MultiheadAttention(shape.hidden, shape.heads))) {}

  Tensor forward(const Tensor& x, const Masks& masks) {
    if (!masks.drops)
      return std::get<0>(heads->forward(x, x, x, masks.padding, false, masks.future));
    const Tensor qkv = torch::linear(x, heads->in_proj_weight, heads->in_proj_bias);
    const std::vector<Tensor> parts = byHead(qkv, heads->options.num_heads());
    return heads->out_proj(masks.mixed(scaledScores(parts[0], parts[1]), parts[2]));
  }
};

// NeoX's: rows (i, i + R/2) of the first R = D/4 of a head turn as complex numbers.
struct RotaryAttention : nn::Module {
  int64_t count, width;  // of heads
  nn::Linear qkv, output;

  explicit RotaryAttention(const ModelShape& shape)
      : count(shape.heads),
        width(shape.hidden / shape.heads),
        qkv(register_module("qkv", nn::Linear(shape.hidden, 3 * shape.hidden))),
        output(register_module("output", nn::Linear(shape.hidden, shape.hidden))) {}

  Tensor forward(const Tensor& x, const Masks& masks) {
    const auto parts = qkv(x).view({x.size(0), x.size(1), count, 3, width}).unbind(3);
    const auto one = [](const Tensor& part) { return part.permute({1, 2, 0, 3}); };
    return output(
        masks.mixed(scaledScores(one(turn(parts[0])), one(turn(parts[1]))), one(parts[2])));
  }

  Tensor turn(const Tensor& rows) const {
    const int64_t rotary = width / 4, pairs = rotary / 2;
    const Tensor exponents = torch::arange(pairs, rows.options()) / static_cast<double>(pairs);
    const Tensor angles =
        torch::outer(torch::arange(rows.size(0), rows.options()), torch::pow(10000.0, -exponents))
            .view({-1, 1, 1, pairs});
    const Tensor numbers = torch::complex(rows.narrow(3, 0, pairs), rows.narrow(3, pairs, pairs)) *
                           torch::polar(torch::ones_like(angles), angles);
    return torch::cat(
        {torch::real(numbers), torch::imag(numbers), rows.narrow(3, rotary, width - rotary)}, 3);
  }
};

template <class Attention>
struct Block : nn::Module {
  nn::LayerNorm norm1;
  std::shared_ptr<Attention> attention;
  nn::LayerNorm norm2;
  nn::Sequential mlp;

  Block(const ModelShape& shape, double epsilon, const std::string& gelu)
      : norm1(register_module("norm1", layerNorm(shape.hidden, epsilon))),
        attention(register_module("attention", std::make_shared<Attention>(shape))),
        norm2(register_module("norm2", layerNorm(shape.hidden, epsilon))),
        mlp(register_module("mlp", nn::Sequential(nn::Linear(shape.hidden, 4 * shape.hidden),
                                                  nn::GELU(nn::GELUOptions().approximate(gelu)),
                                                  nn::Linear(4 * shape.hidden, shape.hidden)))) {}

  Tensor afterEachOther(const Tensor& x, const Masks& masks) {
    const Tensor y = x + attended(norm1(x), masks);
    return y + expanded(norm2(y), masks);
  }
  Tensor inParallel(const Tensor& x, const Masks& masks) {
    return x + attended(norm1(x), masks) + expanded(norm2(x), masks);
  }
  // With a norm after each sum.
  Tensor normedSums(const Tensor& x, const Masks& masks) {
    const Tensor y = norm1(x + attended(x, masks));
    return norm2(y + expanded(y, masks));
  }
  Tensor attended(const Tensor& x, const Masks& masks) {
    return masks.dropped(attention->forward(x, masks), 2);
  }
  Tensor expanded(const Tensor& x, const Masks& masks) { return masks.dropped(mlp->forward(x), 3); }
};

template <class Attention>
using Blocks = std::vector<std::shared_ptr<Block<Attention>>>;

template <class Attention>
Blocks<Attention> makeBlocks(nn::Module& owner, const ModelShape& shape, double epsilon,
                             const std::string& gelu = "none") {
  Blocks<Attention> blocks;
  for (int64_t i = 0; i < shape.layers; ++i) {
    blocks.push_back(owner.register_module(
        "block" + std::to_string(i), std::make_shared<Block<Attention>>(shape, epsilon, gelu)));
  }
  return blocks;
}

struct Gpt : SerialModel {
  nn::Embedding words, positions;
  Blocks<SelfAttention> blocks;
  nn::LayerNorm norm;
  nn::Linear output;

  explicit Gpt(const ModelShape& shape)
      : words(register_module("words", nn::Embedding(shape.vocabulary, shape.hidden))),
        positions(register_module("positions", nn::Embedding(shape.positions, shape.hidden))),
        blocks(makeBlocks<SelfAttention>(*this, shape, 1e-5, "tanh")),
        norm(register_module("norm", layerNorm(shape.hidden, 1e-5))),
        output(register_module("output", linearWithoutBias(shape.hidden, shape.vocabulary))) {}

  Tensor loss(const Batch& batch) override {
    const Tensor places = torch::arange(static_cast<int64_t>(batch.length)).unsqueeze(1);
    const Masks masks{futureMask(batch), {}, drops};
    Tensor x = masks.dropped(words(turned(batch.tokens, batch)) + positions(places), 0);
    for (size_t i = 0; i < blocks.size(); ++i) x = blocks[i]->afterEachOther(x, masks.of(i));
    return nextByteLoss(output(norm(x)), batch);
  }

  bool decays(const std::string& name, const Tensor& parameter) const override {
    const bool table = name == "words.weight" || name == "positions.weight";
    return !table && SerialModel::decays(name, parameter);
  }
};

struct Neox : SerialModel {
  nn::Embedding words;
  Blocks<RotaryAttention> blocks;
  nn::LayerNorm norm;
  nn::Linear output;

  explicit Neox(const ModelShape& shape)
      : words(register_module("words", nn::Embedding(shape.vocabulary, shape.hidden))),
        blocks(makeBlocks<RotaryAttention>(*this, shape, 1e-5)),
        norm(register_module("norm", layerNorm(shape.hidden, 1e-5))),
        output(register_module("output", linearWithoutBias(shape.hidden, shape.vocabulary))) {}

  Tensor loss(const Batch& batch) override {
    const Masks masks{futureMask(batch), {}, drops};
    Tensor x = masks.dropped(words(turned(batch.tokens, batch)), 0);
    for (size_t i = 0; i < blocks.size(); ++i) x = blocks[i]->inParallel(x, masks.of(i));
    return nextByteLoss(output(norm(x)), batch);
  }
};

// GPT-J's: neighbouring rows of a quarter of a head are a complex number.
struct GptjBlock : nn::Module {
  int64_t heads;
  nn::LayerNorm norm;
  nn::Linear qkv, output, expand, contract;

  explicit GptjBlock(const ModelShape& shape)
      : heads(shape.heads),
        norm(register_module("norm", layerNorm(shape.hidden, 1e-5))),
        qkv(register_module("qkv", linearWithoutBias(shape.hidden, 3 * shape.hidden))),
        output(register_module("output", linearWithoutBias(shape.hidden, shape.hidden))),
        expand(register_module("expand", nn::Linear(shape.hidden, 4 * shape.hidden))),
        contract(register_module("contract", nn::Linear(4 * shape.hidden, shape.hidden))) {}

  Tensor forward(const Tensor& x, const Masks& masks) {
    const Tensor normed = norm(x);
    const std::vector<Tensor> parts = byHead(qkv(normed), heads);
    const Tensor attended =
        output(masks.mixed(scaledScores(turn(parts[0]), turn(parts[1])), parts[2]));
    return x + masks.dropped(attended, 2) +
           masks.dropped(contract(torch::gelu(expand(normed), "tanh")), 3);
  }

  // Of [samples, heads, length, width].
  static Tensor turn(const Tensor& rows) {
    const int64_t rotary = rows.size(3) / 4, pairs = rotary / 2;
    const Tensor speeds = torch::pow(10000.0, -torch::arange(pairs) / static_cast<double>(pairs));
    const Tensor angles = torch::outer(torch::arange(rows.size(2)), speeds);
    const Tensor numbers =
        torch::view_as_complex(rows.narrow(3, 0, rotary).contiguous().unflatten(3, {pairs, 2})) *
        torch::polar(torch::ones_like(angles), angles);
    return torch::cat(
        {torch::view_as_real(numbers).flatten(3), rows.narrow(3, rotary, rows.size(3) - rotary)},
        3);
  }
};

struct Gptj : SerialModel {
  nn::Embedding words;
  std::vector<std::shared_ptr<GptjBlock>> blocks;
  nn::LayerNorm norm;
  nn::Linear output;

  explicit Gptj(const ModelShape& shape)
      : words(register_module("words", nn::Embedding(shape.vocabulary, shape.hidden))),
        norm(nullptr),
        output(nullptr) {
    for (int64_t i = 0; i < shape.layers; ++i)
      blocks.push_back(
          register_module("block" + std::to_string(i), std::make_shared<GptjBlock>(shape)));
    norm = register_module("norm", layerNorm(shape.hidden, 1e-5));
    output = register_module("output", nn::Linear(shape.hidden, shape.vocabulary));
  }

  Tensor loss(const Batch& batch) override {
    const Masks masks{futureMask(batch), {}, drops};
    Tensor x = masks.dropped(words(turned(batch.tokens, batch)), 0);
    for (size_t i = 0; i < blocks.size(); ++i) x = blocks[i]->forward(x, masks.of(i));
    return nextByteLoss(output(norm(x)), batch);
  }
};

// GPT-Neo's, whose scores are not scaled.
struct UnscaledAttention : nn::Module {
  int64_t heads;
  nn::Linear qkv, output;

  explicit UnscaledAttention(const ModelShape& shape)
      : heads(shape.heads),
        qkv(register_module("qkv", linearWithoutBias(shape.hidden, 3 * shape.hidden))),
        output(register_module("output", nn::Linear(shape.hidden, shape.hidden))) {}

  Tensor forward(const Tensor& x, const Masks& masks) {
    const std::vector<Tensor> parts = byHead(qkv(x), heads);
    return output(masks.mixed(torch::einsum("bhqd,bhkd->bhqk", {parts[0], parts[1]}), parts[2]));
  }
};

struct GptNeo : SerialModel {
  int64_t window;
  nn::Embedding words, positions;
  Blocks<UnscaledAttention> blocks;
  nn::LayerNorm norm;

  explicit GptNeo(const ModelShape& shape)
      : window(shape.window),
        words(register_module("words", nn::Embedding(shape.vocabulary, shape.hidden))),
        positions(register_module("positions", nn::Embedding(shape.positions, shape.hidden))),
        blocks(makeBlocks<UnscaledAttention>(*this, shape, 1e-5, "tanh")),
        norm(register_module("norm", layerNorm(shape.hidden, 1e-5))) {}

  Tensor loss(const Batch& batch) override {
    const Tensor places = torch::arange(static_cast<int64_t>(batch.length));
    const Tensor back = places.unsqueeze(1) - places;  // from a query to a key
    Tensor x = words(turned(batch.tokens, batch)) + positions(places.unsqueeze(1));
    x = Masks{{}, {}, drops}.dropped(x, 0);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Tensor seen =
          back.ge(0) & (i % 2 == 0 ? torch::ones_like(back).to(torch::kBool) : back.lt(window));
      const Tensor mask = torch::where(seen, 0.0, -INFINITY).to(torch::kFloat);
      x = blocks[i]->afterEachOther(x, Masks{mask, {}, drops}.of(i));
    }
    return nextByteLoss(torch::matmul(norm(x), words->weight.t()), batch);
  }

  bool decays(const std::string& name, const Tensor& parameter) const override {
    return name != "positions.weight" && SerialModel::decays(name, parameter);
  }
};

// BERT's head for masked words, but for its matrix, which is the embedding.
struct MaskedWords : nn::Module {
  nn::Linear transform;
  nn::LayerNorm norm;

  explicit MaskedWords(int64_t width, double epsilon = 1e-12)
      : transform(register_module("transform", nn::Linear(width, width))),
        norm(register_module("norm", layerNorm(width, epsilon))) {}

  Tensor forward(const Tensor& x) { return norm(torch::gelu(transform(x))); }
};

struct Bias : nn::Module {
  Tensor values;
  explicit Bias(int64_t width) : values(register_parameter("values", torch::zeros(width))) {}
};

// The mean over the samples of each one's mean.
Tensor meanOfMeans(const Tensor& logits, const Tensor& targets) {
  const auto each =
      functional::CrossEntropyFuncOptions().reduction(torch::kNone).ignore_index(Batch::kNoTarget);
  const Tensor losses =
      functional::cross_entropy(logits.flatten(0, 1), targets.flatten(), each).view_as(targets);
  return (losses.sum(0) / targets.ne(Batch::kNoTarget).sum(0)).mean();
}

// BERT up to its heads, of either order of norms.
struct BertBody : SerialModel {
  nn::Embedding words, positions, segments;
  nn::LayerNorm norm;
  Blocks<SelfAttention> blocks;
  nn::Linear pooler;
  bool isPreNorm;

  explicit BertBody(const ModelShape& shape)
      : words(register_module("words", nn::Embedding(shape.vocabulary, shape.hidden))),
        positions(register_module("positions", nn::Embedding(shape.positions, shape.hidden))),
        segments(register_module("segments", nn::Embedding(2, shape.hidden))),
        norm(register_module("norm", layerNorm(shape.hidden, 1e-12))),
        blocks(makeBlocks<SelfAttention>(*this, shape, 1e-12)),
        pooler(register_module("pooler", nn::Linear(shape.hidden, shape.hidden))),
        isPreNorm(shape.preNorm) {}

  // [length, samples, width]
  Tensor encoded(const Batch& batch) {
    const Tensor places = torch::arange(static_cast<int64_t>(batch.length)).unsqueeze(1);
    const Tensor padding = places.t() >= torch::tensor(batch.used).unsqueeze(1);
    const Masks masks{{}, padding, drops};
    Tensor x = masks.dropped(norm(words(turned(batch.tokens, batch)) + positions(places) +
                                  segments(turned(batch.segments, batch))),
                             0);
    for (size_t i = 0; i < blocks.size(); ++i)
      x = isPreNorm ? blocks[i]->afterEachOther(x, masks.of(i))
                    : blocks[i]->normedSums(x, masks.of(i));
    return x;
  }
  // Of the first place, [samples, width].
  Tensor pooled(const Tensor& x) { return torch::tanh(pooler(x[0])); }
};

struct Bert : BertBody {
  nn::Linear nextSentence;
  std::shared_ptr<MaskedWords> maskedWords;
  std::shared_ptr<Bias> output;

  explicit Bert(const ModelShape& shape)
      : BertBody(shape),
        nextSentence(register_module("next_sentence", nn::Linear(shape.hidden, 2))),
        maskedWords(register_module("masked_words", std::make_shared<MaskedWords>(shape.hidden))),
        output(register_module("output", std::make_shared<Bias>(shape.vocabulary))) {}

  Tensor loss(const Batch& batch) override {
    const Tensor x = encoded(batch);
    return maskedWordsLoss(x, turned(batch.targets, batch)) +
           functional::cross_entropy(nextSentence(pooled(x)), torch::tensor(batch.labels));
  }

  Tensor maskedWordsLoss(const Tensor& x, const Tensor& targets) {
    const Tensor logits =
        torch::matmul(maskedWords->forward(x), words->weight.t()) + output->values;
    return meanOfMeans(logits, targets);
  }
};

// After each sum a norm, and places that count from 2 up to the padding, whose place is 1.
struct Roberta : SerialModel {
  nn::Embedding words, positions, segments;
  nn::LayerNorm norm;
  Blocks<SelfAttention> blocks;
  std::shared_ptr<MaskedWords> maskedWords;
  std::shared_ptr<Bias> output;

  explicit Roberta(const ModelShape& shape)
      : words(register_module("words", nn::Embedding(shape.vocabulary, shape.hidden))),
        positions(register_module("positions", nn::Embedding(shape.positions + 2, shape.hidden))),
        segments(register_module("segments", nn::Embedding(1, shape.hidden))),
        norm(register_module("norm", layerNorm(shape.hidden, 1e-5))),
        blocks(makeBlocks<SelfAttention>(*this, shape, 1e-5)),
        maskedWords(
            register_module("masked_words", std::make_shared<MaskedWords>(shape.hidden, 1e-5))),
        output(register_module("output", std::make_shared<Bias>(shape.vocabulary))) {}

  Tensor loss(const Batch& batch) override {
    const auto length = static_cast<int64_t>(batch.length);
    const Tensor isWord =
        torch::arange(length).unsqueeze(1).lt(torch::tensor(batch.used)).to(torch::kLong);
    Tensor x = norm(words(turned(batch.tokens, batch)) + positions(isWord.cumsum(0) * isWord + 1) +
                    segments(torch::zeros_like(isWord)));
    const Masks masks{{}, isWord.t().eq(0), drops};
    x = masks.dropped(x, 0);
    for (size_t i = 0; i < blocks.size(); ++i) x = blocks[i]->normedSums(x, masks.of(i));
    const Tensor logits =
        torch::matmul(maskedWords->forward(x), words->weight.t()) + output->values;
    return meanOfMeans(logits, turned(batch.targets, batch));
  }
};

struct Classifier : BertBody {
  nn::Linear classifier;

  explicit Classifier(const ModelShape& shape)
      : BertBody(shape),
        classifier(register_module("classifier", nn::Linear(shape.hidden, shape.classes))) {}

  Tensor loss(const Batch& batch) override {
    return functional::cross_entropy(classifier(pooled(encoded(batch))),
                                     torch::tensor(batch.labels));
  }
};

}  // namespace

std::shared_ptr<SerialModel> makeSerialModel(const ModelShape& shape) {
  TORCH_CHECK(shape.rotary == Rotary::kPartial, "only partial rotary has a reference");
  if (shape.classes > 0) return std::make_shared<Classifier>(shape);
  switch (shape.family) {
    case Family::kGptj:
      return std::make_shared<Gptj>(shape);
    case Family::kGptNeo:
      return std::make_shared<GptNeo>(shape);
    case Family::kRoberta:
      return std::make_shared<Roberta>(shape);
    case Family::kNeox:
      return std::make_shared<Neox>(shape);
    case Family::kBert:
      TORCH_CHECK(shape.preNorm, "only pre-LN BERTs have a reference");
      return std::make_shared<Bert>(shape);
    case Family::kGpt:
      break;
  }
  TORCH_CHECK(!shape.tied, "only untied GPTs have a reference");
  return std::make_shared<Gpt>(shape);
}

}  // namespace weft::train
