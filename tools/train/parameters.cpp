// SPDX-License-Identifier: Apache-2.0
#include "tools/train/parameters.h"

#include <functional>
#include <numeric>

#include "tools/train/models/bert_layers.h"
#include "tools/train/models/gpt_layers.h"
#include "tools/train/models/gptj_layers.h"
#include "tools/train/models/gptneo_layers.h"
#include "tools/train/models/neox_layers.h"

namespace weft::train {

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

Parameters parametersOf(const ModelShape& shape, TensorPart part) {
  Parameters parameters = parametersOf(shape);
  for (Parameter& parameter : parameters.list) parameter.shape = shapeOfPart(parameter, part);
  return parameters;
}

}  // namespace weft::train
