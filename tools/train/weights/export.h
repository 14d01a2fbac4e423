// SPDX-License-Identifier: Apache-2.0
// A model's weights for others, by Hugging Face's names.
#pragma once

#include <string>

#include "tools/train/model_shape.h"

namespace weft::train {

// Writes `target` of `own`, a safetensors file with the parameters of parametersOf(shape) under
// their own names: what torch.save would of a state dict if it ends with .pt, .pth or .bin, else
// safetensors. All in fp32. What was there is replaced when the new file is whole and on disk.
// Throws Failure.
void exportWeights(const std::string& own, const std::string& target, const ModelShape& shape);

}  // namespace weft::train
