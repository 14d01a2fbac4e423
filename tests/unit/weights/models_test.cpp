// SPDX-License-Identifier: Apache-2.0
// Weights of whole models, out and in again.
#include <cstdio>
#include <random>

#include "files.h"
#include "tools/train/parameters.h"
#include "tools/train/weights/export.h"
#include "tools/train/weights/initial_weights.h"
#include "tools/train/weights/weights_writer.h"

namespace weft::train {
using namespace test;
namespace {

// A small one of each way to put a model together.
std::vector<ModelShape> smallShapes() {
  std::vector<ModelShape> shapes;
  for (const char* name :
       {"gpt", "gpt2-small", "neox", "bert", "bert-large", "gptj", "gptneo", "roberta"}) {
    shapes.push_back(namedShape(name));
    shapes.back().layers = 2;
    shapes.back().hidden = 16;
    shapes.back().heads = 2;
    shapes.back().vocabulary = 11;
    shapes.back().positions = 5;
  }
  shapes.push_back(shapes[2]);
  shapes.back().rotary = Rotary::kZeroFrequency;
  return shapes;
}

class StoredModels : public testing::Test {
 protected:
  std::vector<std::vector<float>> drawWeights(const ModelShape& shape) {
    std::vector<std::vector<float>> weights;
    for (const Parameter& parameter : parametersOf(shape).list) {
      weights.emplace_back(parameter.size());
      for (float& each : weights.back())
        each = std::uniform_real_distribution<float>(-1, 1)(random_);
    }
    return weights;
  }

  // Under our own names, as the shard exports them, then under those of others.
  std::string exported(const ModelShape& shape, const std::vector<std::vector<float>>& weights,
                       const std::string& name) {
    std::vector<NamedShape> tensors;
    for (const Parameter& parameter : parametersOf(shape).list)
      tensors.push_back({parameter.name, parameter.shape});
    const auto own = safetensorsWriter(folder_ / "own", tensors);
    for (const std::vector<float>& each : weights) own->append(each);
    own->finish();
    exportWeights({folder_ / "own"}, 1, folder_ / name, shape);
    return folder_ / name;
  }

  std::string refusal(const std::string& path, const ModelShape& shape) {
    return refusalOf([&] { InitialWeights(path, shape); });
  }

  TemporaryFolder folder_;
  std::mt19937 random_{5};
};

TEST_F(StoredModels, ComeBackToTheBitInEveryFormat) {
  for (const ModelShape& shape : smallShapes())
    for (const char* file : {"x.safetensors", "x.pt", "x.bin"}) {
      const auto weights = drawWeights(shape);
      const InitialWeights read(exported(shape, weights, file), shape);
      for (size_t i = 0; i < weights.size(); ++i)
        ASSERT_EQ(read.of(i), weights[i]) << file << " " << parametersOf(shape).list[i].name;
    }
}

TEST_F(StoredModels, BothFormsOfRotaryAreOneModelOutside) {
  const ModelShape partial = smallShapes()[2], whole = smallShapes().back();
  const auto weights = drawWeights(partial);
  const std::string file = exported(partial, weights, "x.safetensors");
  const InitialWeights read(file, whole);
  std::vector<std::vector<float>> turned;
  for (size_t i = 0; i < weights.size(); ++i) turned.push_back(read.of(i));
  EXPECT_NE(turned, weights);
  const InitialWeights back(exported(whole, turned, "y.pt"), partial);
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_EQ(back.of(i), weights[i]);
}

TEST_F(StoredModels, AnotherModelIsToldByItsFirstTensor) {
  const ModelShape shape = smallShapes()[0];
  const std::string file = exported(shape, drawWeights(shape), "x.pt"),
                    from = "--init-from " + file;
  const std::string options =
      "; which model is meant say --model, --layers, --hidden, --heads, --vocab-size and --seq";
  ModelShape other = shape;
  other.vocabulary = 12;
  EXPECT_EQ(refusal(file, other), from +
                                      " has the tensor transformer.wte.weight as [11, 16], and "
                                      "this model has it as [12, 16]" +
                                      options);
  other = shape;
  other.layers = 3;
  EXPECT_EQ(
      refusal(file, other),
      from + " has no tensor transformer.h.2.ln_1.weight, which this model has as [16]" + options);
  other.layers = 1;
  EXPECT_EQ(refusal(file, other), from +
                                      " has a tensor transformer.h.1.attn.c_attn.bias [48], which "
                                      "is no part of this model" +
                                      options);
  other = shape;
  other.tied = true;
  EXPECT_EQ(refusal(file, other),
            from +
                ": tensor lm_head.weight differs from transformer.wte.weight, which this model "
                "has in its place");
}

// GPT-2 as its folder has it: without a head and its prefix, with masks, in two files and fp16.
TEST_F(StoredModels, AFolderOfSeveralFilesIsOneModel) {
  ModelShape shape = smallShapes()[1];
  shape.layers = 1;
  const InitialWeights reference(exported(shape, drawWeights(shape), "x.pt"), shape);
  const StoredWeights stored(folder_ / "x.pt");
  std::string headers[2] = {"{", "{"}, data[2], map;
  size_t next = 0;
  const auto add = [&](const std::string& name, const std::string& type, const std::string& extents,
                       const std::string& bytes) {
    const size_t in = next++ % 2, from = data[in].size();
    data[in] += bytes;
    headers[in] += (headers[in].size() > 1 ? ",\"" : "\"") + name + R"(":{"dtype":")" + type +
                   R"(","shape":)" + extents + R"(,"data_offsets":[)" + std::to_string(from) + "," +
                   std::to_string(data[in].size()) + "]}";
    map += (map.empty() ? "\"" : ",\"") + name + "\":\"part" + std::to_string(in) + "\"";
  };
  for (const auto& [name, place] : stored.tensors()) {
    if (name == "lm_head.weight") continue;
    std::vector<uint16_t> halves(floatsOf(place.tensor).size(), 0x3c00);  // 1
    add(name.substr(std::string("transformer.").size()), "F16", inWords(place.tensor.shape),
        rawBytes(halves));
  }
  add("h.0.attn.bias", "BOOL", "[1,1]", "\1");
  const auto write = [&](const std::string& weightMap) {
    for (const size_t in : {0u, 1u})
      folder_.write("gpt2/part" + std::to_string(in), safetensors(headers[in] + "}", data[in]));
    folder_.write("gpt2/model.safetensors.index.json", weightMap);
  };
  write("{\"weight_map\":{" + map + "}}");
  const InitialWeights read(folder_ / "gpt2", shape);
  for (size_t i = 0; i < parametersOf(shape).list.size(); ++i)
    EXPECT_EQ(read.of(i), std::vector<float>(reference.of(i).size(), 1.0f));

  const std::string index = folder_ / "gpt2/model.safetensors.index.json";
  write("{\"weight_map\":{" + map + ",\"x\":\"part0\"}}");
  EXPECT_EQ(refusal(folder_ / "gpt2", shape),
            index + ", byte 0: tensor x is not in part0, where the index has it");
  write("{\"weight_map\":{\"x\":\"../part0\"}}");
  EXPECT_EQ(refusal(index, shape), index + ", byte 0: tensor x is in no file beside the index");
  write("[]");
  EXPECT_EQ(refusal(index, shape),
            index + ", byte 0: it is no index of weights: it has no weight_map");
  EXPECT_EQ(refusal(folder_.path(), shape),
            folder_.path() +
                " has none of model.safetensors.index.json, model.safetensors, "
                "pytorch_model.bin.index.json, pytorch_model.bin; name the file itself");
}

TEST_F(StoredModels, WhatIsNoWeightIsRefused) {
  const ModelShape shape = smallShapes()[0];
  const std::string file = folder_.write(
      "x", safetensors(R"({"wte.weight":{"dtype":"I16","shape":[11,16],"data_offsets":[0,352]}})",
                       std::string(352, '\0')));
  EXPECT_EQ(refusal(file, shape), "--init-from " + file +
                                      ": tensor wte.weight is of I16, and weights are of floating "
                                      "point");
  EXPECT_EQ(refusal("/nowhere", shape), "cannot read /nowhere: No such file or directory");
}

TEST_F(StoredModels, AFileThatCannotBeWrittenLeavesTheOneBefore) {
  const ModelShape shape = smallShapes()[0];
  exported(shape, drawWeights(shape), "x.pt");
  folder_.write("y.pt.part/in the way", "");
  folder_.write("y.pt", "before");
  try {
    exportWeights({folder_ / "own"}, 1, folder_ / "y.pt", shape);
    FAIL() << "it was written";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), 73);
    EXPECT_EQ(failure.what(), "cannot write " + (folder_ / "y.pt") + ": Is a directory");
  }
}

}  // namespace
}  // namespace weft::train
