// SPDX-License-Identifier: Apache-2.0
// BERT with a head for classes of sentences, beside the same model in torch::nn.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/train/serial_models.h"
#include "tests/train/small_models.h"
#include "tools/train/class_scores.h"
#include "tools/train/labelled_sentences.h"
#include "tools/train/model.h"

namespace weft::train {
namespace {

Batch labelledBatch(int64_t classes) {
  std::vector<LabelledSentence> sentences;
  for (int i = 0; i < 6; ++i)
    sentences.push_back({fmt::format("{} squared is {}", i, i * i), i * 7 % classes});
  return LabelledSamples(byteVocabulary(), sentences, kLength, 6, 1,
                         LabelledSamples::Order::kAsTheyAre)
      .batch(0, 0, 6);
}

void expectThatOfTorchsLayers(const ModelShape& shape) {
  const Batch batch = labelledBatch(shape.classes);
  std::vector<std::vector<float>> weights, gradients;
  std::vector<ParameterMemory> memory;
  const std::vector<Parameter> list = parametersOf(shape).list;
  for (const Parameter& parameter : list) {
    weights.emplace_back(parameter.size());
    gradients.emplace_back(parameter.size());
    memory.push_back({weights.back().data(), gradients.back().data()});
  }
  Model ours(shape, Compute::kAsWeights, Element::kFloat32, Element::kFloat32, memory);
  ours.initialize(5);
  for (float& weight : weights[list.size() - 2]) weight *= 20;  // so that classes differ
  const double loss = ours.forward(batch);
  ours.backward(1.0);

  const auto theirs = makeSerialModel(shape);
  const auto parameters = theirs->parameters();
  ASSERT_EQ(parameters.size(), list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    ASSERT_EQ(parameters[i].sizes().vec(), list[i].shape) << list[i].name;
    std::memcpy(parameters[i].data_ptr<float>(), weights[i].data(),
                weights[i].size() * sizeof(float));
  }
  const torch::Tensor expected = theirs->loss(batch);
  expected.backward();
  EXPECT_NEAR(loss, expected.item<double>(), 1e-6);
  for (size_t i = 0; i < list.size(); ++i) {
    const float* const right = parameters[i].grad().data_ptr<float>();
    for (size_t k = 0; k < gradients[i].size(); ++k)
      ASSERT_NEAR(gradients[i][k], right[k], 1e-6) << list[i].name << " " << k;
  }

  ClassSums sums;
  for (const ClassSums& each : judged(ours.scores(batch), batch)) sums.add(each);
  EXPECT_EQ(sums.samples, 6);
  EXPECT_NEAR(sums.mean().loss, loss, 1e-6) << "as it is evaluated";
}

TEST(Classification, IsThatOfTorchsLayers) {
  for (const bool preNorm : {true, false})
    for (const int64_t classes : {2, 5}) {
      ModelShape shape = optionsOf("bert").shape;
      shape.preNorm = preNorm;
      shape.classes = classes;
      expectThatOfTorchsLayers(shape);
    }
}

}  // namespace
}  // namespace weft::train
