// SPDX-License-Identifier: Apache-2.0
#include "tools/train/parameters.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "tools/train/layer_cut.h"
#include "tools/train/models/bert_layers.h"
#include "tools/train/models/gpt_layers.h"
#include "tools/train/models/gptj_layers.h"
#include "tools/train/models/gptneo_layers.h"
#include "tools/train/models/neox_layers.h"

namespace weft::train {
namespace {

constexpr double kMaskedShare =
    0.15;  // of the tokens of BERT's samples, which alone reach its head

// What a token costs is a product with each matrix that it passes.
double costOf(const Parameters& whole, const Layer& layer) {
  double cost = 0;
  for (size_t i = layer.first; i < layer.first + layer.count; ++i)
    if (whole.list[i].shape.size() > 1) cost += static_cast<double>(whole.list[i].size());
  return cost;
}

// Of each block; the last one has the head as well, which is worth some blocks.
std::vector<double> costsOfBlocks(const ModelShape& shape) {
  const Parameters whole = parametersOf(shape);
  std::vector<double> costs(static_cast<size_t>(shape.layers), costOf(whole, whole.layers[1]));
  double head = costOf(whole, whole.layers.back());
  if (whole.firstLayer == FirstLayer::kIsFirstAndLast)
    head += static_cast<double>(whole.list[0].size());
  if (fillsMasks(shape.family)) head *= kMaskedShare;
  costs.back() += head;
  return costs;
}

}  // namespace

size_t Parameter::size() const {
  return static_cast<size_t>(
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
}

size_t Parameters::size() const {
  return std::accumulate(list.begin(), list.end(), size_t{0},
                         [](size_t sum, const Parameter& each) { return sum + each.size(); });
}

Parameters parametersOf(const ModelShape& shape) {
  Declaration declaration;
  switch (shape.family) {
    case Family::kGpt:
      GptLayers(shape, declaration);
      break;
    case Family::kGptj:
      GptjLayers(shape, declaration);
      break;
    case Family::kGptNeo:
      GptNeoLayers(shape, declaration);
      break;
    case Family::kNeox:
      NeoxLayers(shape, declaration);
      break;
    case Family::kBert:
    case Family::kRoberta:
      BertLayers(shape, declaration);
      break;
  }
  return declaration.take();
}

std::vector<int64_t> blocksOfRuns(const ModelShape& shape, const PipelineStage& stage) {
  if (!stage.blocks.empty()) return stage.blocks;
  return cheapestCut(costsOfBlocks(shape), stage.runs());
}

Range layersOf(const ModelShape& shape, const PipelineStage& stage, int64_t run) {
  const std::vector<int64_t> blocks = blocksOfRuns(shape, stage);
  const auto own = blocks.begin() + run;
  const int64_t before = std::accumulate(blocks.begin(), own, int64_t{0});
  return {run == 0 ? 0 : before + 1, before + *own + (run + 1 == stage.runs() ? 2 : 1)};
}

Parameters parametersOf(const ModelShape& shape, const ModelPart& part) {
  const Parameters whole = parametersOf(shape);
  const PipelineStage& stage = part.stage;
  const bool isTied = whole.firstLayer == FirstLayer::kIsFirstAndLast, isCut = stage.count > 1;
  Parameters own;
  own.firstIsInTwoStages = isTied && isCut && (stage.isFirst() || stage.isLast());
  const auto take = [&](const Layer& layer) {
    own.layers.push_back({own.list.size(), layer.count});
    for (size_t i = layer.first; i < layer.first + layer.count; ++i) {
      own.inWhole.push_back(i);
      own.list.push_back(whole.list[i]);
      own.list.back().shape = shapeOfPart(whole.list[i], part.tensor);
    }
    return own.layers.size() - 1;
  };
  const bool hasFirstForHead = own.firstIsInTwoStages && stage.isLast();
  if (hasFirstForHead) take({0, 1});
  for (int64_t v = 0; v < stage.virtuals; ++v) {
    const auto [first, end] = layersOf(shape, stage, stage.run(v));
    std::vector<size_t>& run = own.runs.emplace_back();
    for (int64_t layer = first; layer < end; ++layer)
      run.push_back(take(whole.layers[static_cast<size_t>(layer)]));
  }
  if (hasFirstForHead) own.runs.back().insert(own.runs.back().begin(), 0);
  if (!isCut) own.firstLayer = whole.firstLayer;
  if (hasFirstForHead) own.firstLayer = FirstLayer::kIsLast;
  return own;
}

}  // namespace weft::train
