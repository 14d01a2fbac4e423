// SPDX-License-Identifier: Apache-2.0
#include "tools/train/weights/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/train/models/bert_layers.h"
#include "tools/train/models/gpt_layers.h"
#include "tools/train/models/gptj_layers.h"
#include "tools/train/models/gptneo_layers.h"
#include "tools/train/models/neox_layers.h"
#include "tools/train/models/rotary.h"

namespace weft::train {
namespace {

class Names {
 public:
  explicit Names(std::string prefix) { result_.prefix = std::move(prefix); }

  void one(size_t parameter, const std::string& name, bool transposed = false) {
    several(parameter, {name}, transposed);
  }
  void several(size_t parameter, std::vector<std::string> names, bool transposed = false) {
    if (result_.parameters.size() <= parameter) result_.parameters.resize(parameter + 1);
    result_.parameters[parameter] = {std::move(names), transposed, {}};
  }
  void order(size_t parameter, std::vector<int64_t> rows) {
    result_.parameters[parameter].rows = std::move(rows);
  }
  void norm(const NormAt& at, const std::string& name) {
    one(at.gain, name + ".weight");
    one(at.bias, name + ".bias");
  }
  void linear(const LinearAt& at, const std::string& name, bool transposed = false) {
    one(at.weight, name + ".weight", transposed);
    if (at.hasBias()) one(at.bias, name + ".bias");
  }
  // Of a fused projection.
  void linears(const LinearAt& at, const std::vector<std::string>& names) {
    several(at.weight, withEnding(names, ".weight"));
    if (at.hasBias()) several(at.bias, withEnding(names, ".bias"));
  }
  void copy(const std::string& name, const std::string& of) {
    result_.copies.push_back({name, of});
  }

  void headFrom(size_t parameter, const std::string& otherHeads) {
    result_.head = parameter;
    result_.otherHeads = otherHeads;
  }

  HuggingFaceNames take() { return std::move(result_); }

 private:
  static std::vector<std::string> withEnding(std::vector<std::string> names, const char* ending) {
    for (std::string& name : names) name += ending;
    return names;
  }

  HuggingFaceNames result_;
};

HuggingFaceNames gptNames(const ModelShape& shape) {
  Declaration declaration;
  const GptLayers at(shape, declaration);
  Names names("transformer.");
  names.one(at.words, "transformer.wte.weight");
  names.one(at.positions, "transformer.wpe.weight");
  for (size_t i = 0; i < at.blocks.size(); ++i) {
    const std::string block = fmt::format("transformer.h.{}.", i);
    names.norm(at.blocks[i].norm1, block + "ln_1");
    names.linear(at.blocks[i].qkv, block + "attn.c_attn", true);
    names.linear(at.blocks[i].attention, block + "attn.c_proj", true);
    names.norm(at.blocks[i].norm2, block + "ln_2");
    names.linear(at.blocks[i].expand, block + "mlp.c_fc", true);
    names.linear(at.blocks[i].contract, block + "mlp.c_proj", true);
  }
  names.norm(at.norm, "transformer.ln_f");
  if (shape.tied)
    names.copy("lm_head.weight", "transformer.wte.weight");
  else
    names.one(at.output, "lm_head.weight");
  return names.take();
}

HuggingFaceNames gptjNames(const ModelShape& shape) {
  Declaration declaration;
  const GptjLayers at(shape, declaration);
  Names names("transformer.");
  names.one(at.words, "transformer.wte.weight");
  for (size_t i = 0; i < at.blocks.size(); ++i) {
    const std::string block = fmt::format("transformer.h.{}.", i), attention = block + "attn.";
    names.norm(at.blocks[i].norm1, block + "ln_1");
    names.linears(at.blocks[i].qkv,
                  {attention + "q_proj", attention + "k_proj", attention + "v_proj"});
    names.linear(at.blocks[i].attention, attention + "out_proj");
    names.linear(at.blocks[i].expand, block + "mlp.fc_in");
    names.linear(at.blocks[i].contract, block + "mlp.fc_out");
  }
  names.norm(at.norm, "transformer.ln_f");
  names.linear(at.output, "lm_head");
  return names.take();
}

HuggingFaceNames gptNeoNames(const ModelShape& shape) {
  Declaration declaration;
  const GptNeoLayers at(shape, declaration);
  Names names("transformer.");
  names.one(at.words, "transformer.wte.weight");
  names.one(at.positions, "transformer.wpe.weight");
  for (size_t i = 0; i < at.blocks.size(); ++i) {
    const std::string block = fmt::format("transformer.h.{}.", i),
                      attention = block + "attn.attention.";
    names.norm(at.blocks[i].norm1, block + "ln_1");
    names.linears(at.blocks[i].qkv,
                  {attention + "q_proj", attention + "k_proj", attention + "v_proj"});
    names.linear(at.blocks[i].attention, attention + "out_proj");
    names.norm(at.blocks[i].norm2, block + "ln_2");
    names.linear(at.blocks[i].expand, block + "mlp.c_fc");
    names.linear(at.blocks[i].contract, block + "mlp.c_proj");
  }
  names.norm(at.norm, "transformer.ln_f");
  names.copy("lm_head.weight", "transformer.wte.weight");
  return names.take();
}

HuggingFaceNames neoxNames(const ModelShape& shape) {
  Declaration declaration;
  const NeoxLayers at(shape, declaration);
  Names names("gpt_neox.");
  std::vector<int64_t> rows;
  if (shape.rotary == Rotary::kZeroFrequency)
    rows = zeroFrequencyQkvOrder(shape.heads, shape.hidden / shape.heads);
  names.one(at.words, "gpt_neox.embed_in.weight");
  for (size_t i = 0; i < at.blocks.size(); ++i) {
    const std::string block = fmt::format("gpt_neox.layers.{}.", i);
    names.norm(at.blocks[i].norm1, block + "input_layernorm");
    names.linear(at.blocks[i].qkv, block + "attention.query_key_value");
    for (const size_t turned : {at.blocks[i].qkv.weight, at.blocks[i].qkv.bias})
      names.order(turned, rows);
    names.linear(at.blocks[i].attention, block + "attention.dense");
    names.norm(at.blocks[i].norm2, block + "post_attention_layernorm");
    names.linear(at.blocks[i].expand, block + "mlp.dense_h_to_4h");
    names.linear(at.blocks[i].contract, block + "mlp.dense_4h_to_h");
  }
  names.norm(at.norm, "gpt_neox.final_layer_norm");
  names.one(at.output, "embed_out.weight");
  return names.take();
}

// A block of BERT's. The norms of a pre-LN one have the names that they have after the sums.
void bertBlock(const BlockAt& at, const std::string& name, Names& names) {
  const std::string self = name + "attention.self.";
  names.norm(at.norm1, name + "attention.output.LayerNorm");
  names.linears(at.qkv, {self + "query", self + "key", self + "value"});
  names.linear(at.attention, name + "attention.output.dense");
  names.norm(at.norm2, name + "output.LayerNorm");
  names.linear(at.expand, name + "intermediate.dense");
  names.linear(at.contract, name + "output.dense");
}

// All but the heads.
void bertBody(const BertLayers& at, const std::string& model, Names& names) {
  names.one(at.words, model + "embeddings.word_embeddings.weight");
  names.one(at.positions, model + "embeddings.position_embeddings.weight");
  names.one(at.segments, model + "embeddings.token_type_embeddings.weight");
  names.norm(at.embeddingNorm, model + "embeddings.LayerNorm");
  for (size_t i = 0; i < at.blocks.size(); ++i)
    bertBlock(at.blocks[i], fmt::format("{}encoder.layer.{}.", model, i), names);
}

HuggingFaceNames robertaNames(const ModelShape& shape) {
  Declaration declaration;
  const BertLayers at(shape, declaration);
  Names names("roberta.");
  bertBody(at, "roberta.", names);
  if (shape.classes > 0) {
    names.linear(at.pooler, "classifier.dense");
    names.linear(at.classifier, "classifier.out_proj");
    names.headFrom(at.pooler.weight, "lm_head.");
    return names.take();
  }
  names.linear(at.transform, "lm_head.dense");
  names.norm(at.transformNorm, "lm_head.layer_norm");
  names.one(at.outputBias, "lm_head.bias");
  names.copy("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight");
  names.copy("lm_head.decoder.bias", "lm_head.bias");
  return names.take();
}

HuggingFaceNames bertNames(const ModelShape& shape) {
  Declaration declaration;
  const BertLayers at(shape, declaration);
  Names names("bert.");
  bertBody(at, "bert.", names);
  names.linear(at.pooler, "bert.pooler.dense");
  if (shape.classes > 0) {
    names.linear(at.classifier, "classifier");
    names.headFrom(at.pooler.weight, "cls.");
    return names.take();
  }
  names.linear(at.nextSentence, "cls.seq_relationship");
  names.linear(at.transform, "cls.predictions.transform.dense");
  names.norm(at.transformNorm, "cls.predictions.transform.LayerNorm");
  names.one(at.outputBias, "cls.predictions.bias");
  names.copy("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight");
  names.copy("cls.predictions.decoder.bias", "cls.predictions.bias");
  return names.take();
}

}  // namespace

HuggingFaceNames huggingFaceNames(const ModelShape& shape) {
  switch (shape.family) {
    case Family::kGptj:
      return gptjNames(shape);
    case Family::kGptNeo:
      return gptNeoNames(shape);
    case Family::kNeox:
      return neoxNames(shape);
    case Family::kRoberta:
      return robertaNames(shape);
    case Family::kBert:
      return bertNames(shape);
    case Family::kGpt:
      break;
  }
  return gptNames(shape);
}

bool isNoParameter(const std::string& name) {
  constexpr std::array<std::string_view, 8> kEndings{".attn.bias",
                                                     ".attn.masked_bias",
                                                     ".attention.bias",
                                                     ".attention.masked_bias",
                                                     ".rotary_emb.inv_freq",
                                                     "embeddings.position_ids",
                                                     "roberta.pooler.dense.weight",
                                                     "roberta.pooler.dense.bias"};
  return std::ranges::any_of(kEndings, [&](std::string_view each) { return name.ends_with(each); });
}

}  // namespace weft::train
