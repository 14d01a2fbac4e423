// SPDX-License-Identifier: Apache-2.0
#include "tools/train/parameters.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

TEST(Parameters, AreAsManyAsPublished) {
  const struct {
    const char* model;
    size_t parameters;
  } models[] = {
      {"bert-large", 336'226'108},    {"bert-1.5b", 1'530'379'324},
      {"gpt2-small", 124'439'808},    {"gpt2-medium", 354'823'168},
      {"gpt2-large", 774'030'080},    {"gpt2-xl", 1'557'611'200},
      {"pythia-70m", 70'426'624},     {"pythia-160m", 162'322'944},
      {"pythia-410m", 405'334'016},   {"pythia-1b", 1'011'781'632},
      {"pythia-1.4b", 1'414'647'808}, {"pythia-2.8b", 2'775'208'960},
      {"pythia-6.9b", 6'857'302'016}, {"pythia-12b", 11'846'072'320},
      {"neox-20b", 20'554'567'680},
  };
  for (const auto& [model, parameters] : models) {
    EXPECT_EQ(parametersOf(namedShape(model)).size(), parameters) << model;
  }
}

// As counted from the shapes of Hugging Face's GPTJForCausalLM, GPTNeoForCausalLM and
// RobertaForMaskedLM.
TEST(Parameters, AreAsManyAsThoseOfTransformers) {
  const struct {
    const char* model;
    size_t parameters;
  } models[] = {
      {"gptj-6b", 6'050'882'784},     {"gptneo-125m", 125'198'592},  {"gptneo-1.3b", 1'315'575'808},
      {"gptneo-2.7b", 2'651'307'520}, {"roberta-base", 124'697'433}, {"roberta-large", 355'412'057},
  };
  for (const auto& [model, parameters] : models)
    EXPECT_EQ(parametersOf(namedShape(model)).size(), parameters) << model;
}

TEST(Parameters, APaddedVocabularyIsCounted) {
  ModelShape shape = namedShape("bert-large");
  shape.vocabulary = 30528;
  EXPECT_EQ(parametersOf(shape).size(), 336'232'258u);
}

TEST(Parameters, LayersTileThem) {
  for (const std::string& model : modelNames()) {
    const ModelShape shape = namedShape(model);
    const Parameters parameters = parametersOf(shape);
    EXPECT_EQ(parameters.layers.size(), static_cast<size_t>(shape.layers) + 2) << model;
    size_t next = 0;
    for (const Layer& layer : parameters.layers) {
      EXPECT_EQ(layer.first, next) << model;
      EXPECT_GT(layer.count, 0u) << model;
      next += layer.count;
    }
    EXPECT_EQ(next, parameters.list.size()) << model;
  }
}

TEST(Parameters, HaveNamesOfTheirOwnAndDecayIfTheyAreMatrices) {
  for (const std::string& model : modelNames()) {
    std::set<std::string> names;
    for (const Parameter& parameter : parametersOf(namedShape(model)).list) {
      EXPECT_TRUE(names.insert(parameter.name).second) << model << " " << parameter.name;
      if (parameter.shape.size() == 1) {
        EXPECT_FALSE(parameter.decay) << model << " " << parameter.name;
      }
    }
  }
}

TEST(ModelShape, AnUnknownNameIsToldTheKnownOnes) {
  try {
    namedShape("gpt5");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(std::string(failure.what()).find("there is no model gpt5; there are gpt, neox, bert"),
              0u);
    EXPECT_EQ(failure.code(), 64);
  }
}

// Whatever is cut, and however unevenly.
TEST(Parameters, ArePutTogetherAgainFromTheirParts) {
  std::mt19937 random(3);
  const auto upTo = [&](int64_t most) {
    return 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(most));
  };
  for (int round = 0; round < 300; ++round) {
    Parameter whole{"some", {upTo(20)}, 0, 0, true, {}};
    if (round % 3 != 0) whole.shape.push_back(upTo(20));
    whole.split.along = static_cast<Split::Along>(round % 3);
    if (whole.split.along == Split::Along::kRows) {
      whole.split.matrices = upTo(3);
      whole.shape[0] *= whole.split.matrices;
    }
    std::vector<float> values(whole.size());
    std::iota(values.begin(), values.end(), 0.0f);
    std::vector<std::vector<float>> parts;
    const int64_t count = upTo(6);
    for (int64_t i = 0; i < count; ++i) {
      parts.push_back(partOf(whole, {i, count}, values.data()));
      Parameter part = whole;
      part.shape = shapeOfPart(whole, {i, count});
      EXPECT_EQ(part.size(), parts.back().size());
    }
    EXPECT_EQ(joined(whole, parts), values);
  }
}

// Stages have all layers, each once, but for a tied embedding, which the last one has for its head.
TEST(Parameters, OfStagesAreThoseOfTheModel) {
  for (const std::string& model : modelNames()) {
    const ModelShape shape = namedShape(model);
    const Parameters whole = parametersOf(shape);
    const bool isTied = whole.firstLayer == FirstLayer::kIsFirstAndLast;
    for (const int64_t stages : {int64_t{1}, int64_t{2}, int64_t{3}, shape.layers}) {
      std::vector<size_t> all;
      for (int64_t s = 0; s < stages; ++s) {
        const Parameters own = parametersOf(shape, {{}, {s, stages}});
        const bool hasCopy = isTied && s > 0 && s + 1 == stages;
        EXPECT_EQ(own.firstIsInTwoStages, isTied && stages > 1 && (s == 0 || s + 1 == stages));
        ASSERT_EQ(own.inWhole.size(), own.list.size());
        for (size_t i = 0; i < own.list.size(); ++i)
          EXPECT_EQ(own.list[i].name, whole.list[own.inWhole[i]].name);
        EXPECT_TRUE(!hasCopy || own.inWhole[0] == 0);
        all.insert(all.end(), own.inWhole.begin() + (hasCopy ? 1 : 0), own.inWhole.end());
        size_t next = 0;
        for (const Layer& layer : own.layers)
          EXPECT_EQ(std::exchange(next, next + layer.count), layer.first);
        EXPECT_EQ(next, own.list.size());
      }
      std::vector<size_t> each(whole.list.size());
      std::iota(each.begin(), each.end(), size_t{0});
      EXPECT_EQ(all, each) << model << " in " << stages;
    }
  }
}

// A head costs as much as some blocks, so that the last stage has fewer of them.
TEST(Parameters, StagesAreBalanced) {
  const auto blocksOf = [](const std::string& model, int64_t stages) {
    const ModelShape shape = namedShape(model);
    std::vector<int64_t> blocks;
    for (int64_t s = 0; s < stages; ++s) {
      const auto [first, end] = layersOf(shape, {0, stages}, s);
      blocks.push_back(end - first - (s == 0 ? 1 : 0) - (s + 1 == stages ? 1 : 0));
    }
    return blocks;
  };
  EXPECT_EQ(blocksOf("gpt", 2), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(blocksOf("gpt", 3), (std::vector<int64_t>{1, 2, 1}));
  EXPECT_EQ(blocksOf("gpt", 4), (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(blocksOf("neox-20b", 4), (std::vector<int64_t>{11, 11, 11, 11}));
  EXPECT_EQ(blocksOf("gpt2-small", 2), (std::vector<int64_t>{9, 3}));    // its head is worth 5.4
  EXPECT_EQ(blocksOf("bert-large", 2), (std::vector<int64_t>{12, 12}));  // and BERT's 0.4
}

// Each head has its own rows of the fused projections, and columns of what comes after attention.
TEST(Parameters, OfAttentionAreCutByHeads) {
  const auto rowsOfSecondHead = [](const std::string& model) {
    const ModelShape shape = namedShape(model);
    const Parameter qkv = parametersOf(shape).list[model == "gpt" ? 4 : 3];
    EXPECT_EQ(qkv.name, "block0.qkv.weight");
    std::vector<float> numbers(qkv.size());
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(i / static_cast<size_t>(shape.hidden));
    const std::vector<float> own = partOf(qkv, {1, 4}, numbers.data());
    std::set<float> found(own.begin(), own.end());
    return found;
  };
  const auto runs = [](std::initializer_list<std::pair<int, int>> all) {
    std::set<float> rows;
    for (const auto& [first, end] : all)
      for (int row = first; row < end; ++row) rows.insert(static_cast<float>(row));
    return rows;
  };
  EXPECT_EQ(rowsOfSecondHead("gpt"), runs({{64, 128}, {320, 384}, {576, 640}}));
  EXPECT_EQ(rowsOfSecondHead("neox"), runs({{192, 384}}));
}

}  // namespace
}  // namespace weft::train
