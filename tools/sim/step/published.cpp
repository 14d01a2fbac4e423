// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/step/published.h"

#include <algorithm>

#include "tools/train/model_shape.h"
#include "tools/train/parameters.h"

namespace weft::simulator {
namespace {

shard::ParameterSpec specOf(const train::Parameter& parameter) {
  shard::ParameterSpec spec{parameter.name, parameter.size(), false, !parameter.decay};
  for (const std::int64_t extent : parameter.shape)
    spec.shape.push_back(static_cast<std::uint64_t>(extent));
  return spec;
}

// Elements of the matrices of a layer. The last one multiplies with the embedding where it is tied.
double matricesOf(const train::ModelShape& shape, const train::Parameters& all, std::size_t layer) {
  if (layer == 0) return 0;
  double elements = 0;
  const train::Layer& run = all.layers[layer];
  for (std::size_t i = run.first; i < run.first + run.count; ++i)
    if (all.list[i].shape.size() > 1) elements += static_cast<double>(all.list[i].size());
  if (layer + 1 == all.layers.size() && shape.tied)
    elements += static_cast<double>(shape.vocabulary * shape.hidden);
  return elements;
}

}  // namespace

bool isPublishedModel(const std::string& name) {
  return std::ranges::count(train::modelNames(), name) > 0;
}

StepModel publishedModel(const std::string& name, const ComputeTime& time) {
  train::ModelShape shape = train::namedShape(name);
  constexpr std::int64_t kLength = 128;  // weft-train's
  if (shape.positions == 0) shape.positions = kLength;
  const train::Parameters all = train::parametersOf(shape);
  StepModel model;
  model.name = name;
  for (const train::Parameter& parameter : all.list) model.parameters.push_back(specOf(parameter));
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t i = 0; i < all.layers.size(); ++i) {
    weights.push_back(matricesOf(shape, all, i));
    sum += weights.back();
  }
  for (std::size_t i = 0; i < all.layers.size(); ++i) {
    const train::Layer& layer = all.layers[i];
    const std::string& first = all.list[layer.first].name;
    const double ns = time.ns * weights[i] / sum;
    model.layers.push_back({first.substr(0, first.find('.')), layer.first, layer.count,
                            ns * time.forwardPart, ns * (1 - time.forwardPart)});
  }
  if (all.firstLayer == train::FirstLayer::kIsFirstAndLast) {
    model.parameters.push_back(
        {.name = "tied", .elements = model.parameters[0].elements, .tiedTo = 0});
    ++model.layers.back().count;
  }
  return model;
}

}  // namespace weft::simulator
