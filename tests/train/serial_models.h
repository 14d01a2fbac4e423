// SPDX-License-Identifier: Apache-2.0
// weft-train's models written a second time, with the layers of torch::nn. They share no code with
// tools/train/models.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>

#include "tools/train/batch.h"
#include "tools/train/model_shape.h"

namespace weft::train {

class SerialModel : public torch::nn::Module {
 public:
  // What training drops of x, [samples, ...]: of layer 0 what goes into the first block, and of the blocks, from 1, their
  // attention weights (1), and what attention (2) and MLP (3) give.
  using Dropping = std::function<torch::Tensor(const torch::Tensor& x, int64_t layer, int place)>;
  Dropping drops;  // empty: nothing
  virtual torch::Tensor loss(const Batch& batch) = 0;
  // Whether weight decay applies: to matrices, not to biases and LayerNorms.
  virtual bool decays(const std::string& name, const torch::Tensor& parameter) const {
    static_cast<void>(name);
    return parameter.dim() > 1;
  }
};

// Of a classification: BERT, of either order of norms.
// Its parameters are in the order and of the shapes of parametersOf(shape). Untied GPTs, pre-LN
// BERTs and partial rotary of NeoX alone.
std::shared_ptr<SerialModel> makeSerialModel(const ModelShape& shape);

}  // namespace weft::train
