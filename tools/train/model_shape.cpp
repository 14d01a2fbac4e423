// SPDX-License-Identifier: Apache-2.0
#include "tools/train/model_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

using Named = std::pair<std::string, ModelShape>;

Named tiny(const std::string& name, Family family, int64_t vocabulary) {
  return {name, {family, 4, 256, 4, vocabulary, 0}};
}

Named gpt2(const std::string& name, int64_t layers, int64_t hidden) {
  return {name, {Family::kGpt, layers, hidden, hidden / 64, 50257, 1024, true}};
}

Named pythia(const std::string& name, int64_t layers, int64_t hidden, int64_t heads,
             int64_t vocabulary = 50304) {
  return {name, {Family::kNeox, layers, hidden, heads, vocabulary, 0}};
}

Named gptNeo(const std::string& name, int64_t layers, int64_t hidden, int64_t heads) {
  return {name, {Family::kGptNeo, layers, hidden, heads, 50257, 2048, true}};
}

// Its table of positions has two rows more, for places that count from 2.
Named roberta(const std::string& name, int64_t layers, int64_t hidden, int64_t heads) {
  return {name, {Family::kRoberta, layers, hidden, heads, 50265, 512, true, false}};
}

Named bert(const std::string& name, int64_t layers, int64_t hidden, int64_t heads, bool preNorm) {
  return {name, {Family::kBert, layers, hidden, heads, kBertVocabulary, 512, true, preNorm}};
}

const std::vector<Named>& shapes() {
  static const std::vector<Named> all{
      tiny("gpt", Family::kGpt, kBytes),
      tiny("neox", Family::kNeox, kBytes),
      tiny("bert", Family::kBert, kBytesAndMarks),
      tiny("gptj", Family::kGptj, kBytes),
      {"gptneo", {Family::kGptNeo, 4, 256, 4, kBytes, 0, true, true, Rotary::kPartial, 16}},
      {"roberta", {Family::kRoberta, 4, 256, 4, kBytesAndMarks, 0, true, false}},
      gpt2("gpt2-small", 12, 768),
      gpt2("gpt2-medium", 24, 1024),
      gpt2("gpt2-large", 36, 1280),
      gpt2("gpt2-xl", 48, 1600),
      pythia("pythia-70m", 6, 512, 8),
      pythia("pythia-160m", 12, 768, 12),
      pythia("pythia-410m", 24, 1024, 16),
      pythia("pythia-1b", 16, 2048, 8),
      pythia("pythia-1.4b", 24, 2048, 16),
      pythia("pythia-2.8b", 32, 2560, 32),
      pythia("pythia-6.9b", 32, 4096, 32, 50432),
      pythia("pythia-12b", 36, 5120, 40, 50688),
      pythia("neox-20b", 44, 6144, 64, 50432),
      {"gptj-6b", {Family::kGptj, 28, 4096, 16, 50400, 0}},
      gptNeo("gptneo-125m", 12, 768, 12),
      gptNeo("gptneo-1.3b", 24, 2048, 16),
      gptNeo("gptneo-2.7b", 32, 2560, 20),
      roberta("roberta-base", 12, 768, 12),
      roberta("roberta-large", 24, 1024, 16),
      bert("bert-large", 24, 1024, 16, false),
      bert("bert-1.5b", 48, 1600, 25, true),
  };
  return all;
}

}  // namespace

std::vector<std::string> modelNames() {
  std::vector<std::string> names;
  for (const auto& [name, shape] : shapes()) names.push_back(name);
  return names;
}

ModelShape namedShape(const std::string& name) {
  for (const auto& [known, shape] : shapes()) {
    if (known == name) return shape;
  }
  throw Failure(Exit::kUsage, fmt::format("there is no model {}; there are {}", name,
                                          fmt::join(modelNames(), ", ")));
}

}  // namespace weft::train
